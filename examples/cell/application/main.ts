/** The process of a cell. The launcher tells it what to be, and starts it again when it was killed. */
import { cellApp } from "../pages/app.ts";
import { listen } from "../web/listen.ts";
import { READY, type CellConfig } from "./cell-config.ts";
import { openCell } from "./open-cell.ts";

async function run(config: CellConfig): Promise<void> {
  const cell = await openCell(config);
  const close = await listen(cellApp(cell, config), config.port);
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
process.once("message", (config) => {
  run(config as CellConfig).catch((error: unknown) => {
    process.stderr.write(
      `example: cell ${(config as CellConfig).cell}: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    process.exit(1);
  });
});
