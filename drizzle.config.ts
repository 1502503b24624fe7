import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./src/coordinator/d1/schema.ts",
  out: "./migrations",
});
