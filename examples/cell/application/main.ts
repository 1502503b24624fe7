/** The process of a cell. The launcher sends its configuration, and restarts it if it is killed. */
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

// Ctrl-C reaches every process of the terminal. This one ignores it, because the launcher stops it in order.
process.on("SIGINT", () => {});
// Without the launcher, nothing would restart or stop this process.
process.once("disconnect", () => process.exit(1));
process.once("message", (config) => {
  run(config as CellConfig).catch((error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    process.stderr.write(`example: cell ${(config as CellConfig).cell}: ${text}\n`);
    process.exit(1);
  });
});
