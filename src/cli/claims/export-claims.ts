import type { Source } from "../../users/client/index.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { failureOf } from "../framework/failure.ts";
import { ClosedOutputError } from "../framework/io.ts";
import { toJson } from "../../common/text/escape.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import type { RangeOptions } from "./claims.ts";

interface ExportOptions extends RangeOptions {
  source: Source["type"];
  after?: string;
}

const PROGRESS_EVERY = 10_000;

/** Prints one claim per line as they arrive, so memory does not grow with the cell. */
export async function exportClaims(context: Context, options: ExportOptions): Promise<undefined> {
  const { cell, source, after, type } = options;
  if (context.format === "json") throw usageError("an export is one document per line: leave out --json");
  const { out, err, signal } = context.io;
  const claims = (await context.client())
    .forCell(cell)
    .records.export({ sourceType: source, sourceIdGt: after, bucketTypes: type, signal });
  let count = 0;
  // A cursor moves when its claim is in hand. Only what has been written may be skipped later.
  let written = after ?? "";
  try {
    for await (const claim of claims) {
      await out.write(`${toJson(claim)}\n`);
      written = claims.cursor;
      count += 1;
      if (count % PROGRESS_EVERY === 0) await err.write(`${count} claims, up to source id ${written}\n`);
    }
  } catch (error) {
    if (error instanceof ClosedOutputError) throw error;
    throw interrupted(error, context, options, { count, written });
  }
  await err.write(`${count} claims, as of ${claims.asOf ?? "now"}. That is all.\n`);
  return undefined;
}

/** The error with the command that continues. Claims of an unfinished source id come again. */
function interrupted(
  error: unknown,
  { io }: Context,
  { cell, source, type = [] }: ExportOptions,
  { count, written }: { count: number; written: string },
): CommandError {
  const { message = messageOf(error), exitCode } = failureOf(error, io.signal.aborted);
  const resume = commandLine(
    "claims",
    "export",
    "--cell",
    cell,
    "--source",
    source,
    ...type.flatMap((each) => ["--type", each]),
    ...(written === "" ? [] : ["--after", written]),
  );
  return new CommandError(
    `the export stopped after ${count} claims: ${message}`,
    exitCode === exitCodes.ok ? exitCodes.failed : exitCode,
    [resume],
  );
}
