import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./src/projections/schema.ts",
  out: "./migrations",
});
