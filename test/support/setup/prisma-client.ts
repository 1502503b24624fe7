/** Generates the Prisma client of the tests. `npm run generate:prisma` and the system tests call it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");
const schema = join(root, "test/users/cell/prisma/schema.prisma");
const prisma = join(root, "node_modules/prisma/build/index.js");
/** Holds what the client was generated from. */
const stamp = join(root, "test/users/cell/prisma/generated/source.txt");

export default function generatePrismaClient(): void {
  if (!existsSync(prisma)) {
    process.stderr.write("prisma is missing; needed by the tests of its adapter. Run npm install.\n");
    return;
  }
  const { version } = JSON.parse(readFileSync(join(root, "node_modules/prisma/package.json"), "utf8")) as {
    version: string;
  };
  const source = `${version} ${createHash("sha256").update(readFileSync(schema)).digest("hex")}`;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === source) return;
  execFileSync(process.execPath, [prisma, "generate", "--schema", schema], {
    cwd: root,
    // What it prints is in the error, if it fails.
    stdio: ["ignore", "ignore", "pipe"],
    env: {
      ...process.env,
      CHECKPOINT_DISABLE: "1",
      PRISMA_HIDE_UPDATE_MESSAGE: "1",
      // Otherwise Prisma would download an engine, which only its migrations use.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    },
  });
  writeFileSync(stamp, source);
}

if (import.meta.main) generatePrismaClient();
