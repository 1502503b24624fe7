/** The process of a cell. The launcher tells it what to be, and starts it again when it was killed. */
import { cellApp } from "../pages/app.ts";
import { listen } from "../web/listen.ts";
import { READY, type Job } from "./job.ts";
import { openCell } from "./open-cell.ts";

async function run(job: Job): Promise<void> {
  const cell = await openCell(job);
  const close = await listen(cellApp(cell, job), job.port);
  const end = async (): Promise<void> => {
    await close();
    await cell.close();
    process.exit(0);
  };
  process.once("SIGTERM", () => void end());
  process.send?.(READY);
}

// Ctrl-C reaches every process of the terminal; the launcher ends this one in its turn.
process.on("SIGINT", () => {});
// Nobody starts this cell again, and nobody would end it.
process.once("disconnect", () => process.exit(1));
process.once("message", (job) => {
  run(job as Job).catch((error: unknown) => {
    process.stderr.write(
      `example: cell ${(job as Job).cell}: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exit(1);
  });
});
