import type { Io } from "../framework/io.ts";
import { toJson } from "../../common/text/escape.ts";
import type { Result } from "./result.ts";
import { styleOf } from "./style.ts";

export type Format = "text" | "json" | "jsonl";

/** Prints data on standard output, and everything else on standard error. */
export async function printResult(io: Io, result: Result, format: Format): Promise<void> {
  const { document, lines = [document], text, nextSteps = [], notes = [] } = result;
  switch (format) {
    case "json":
      await io.out.write(`${toJson({ ...document, next_steps: nextSteps }, 2)}\n`);
      break;
    case "jsonl":
      for (const line of lines) await io.out.write(`${toJson(line)}\n`);
      break;
    case "text": {
      const shown = text(styleOf(io));
      if (shown !== "") await io.out.write(`${shown}\n`);
    }
  }
  await printNotes(io, notes);
  if (format !== "json") await printNextSteps(io, nextSteps);
}

async function printNotes(io: Pick<Io, "err">, notes: readonly string[]): Promise<void> {
  for (const note of notes) await io.err.write(`${note}\n`);
}

export async function printNextSteps(io: Pick<Io, "err">, nextSteps: readonly string[]): Promise<void> {
  for (const step of nextSteps) await io.err.write(`Next: ${step}\n`);
}
