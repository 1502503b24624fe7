import type { Part } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { describePart } from "./describe-part.ts";
import { callPart } from "./call-part.ts";

export async function showPart(context: Context, id: string): Promise<Result> {
  const { part } = await callPart<{ part: Part }>(context, "GET", id);
  return { document: { part }, text: () => describePart(part), nextSteps: nextOf(part) };
}

/** What an operator does with a part in this state. */
export function nextOf({ id, state }: Part): string[] {
  switch (state) {
    case "complete":
      return [];
    case "lost":
      return [`${commandLine("parts", "reconcile", id)} --dry-run`];
    case "reconciling":
      return ["leasehold verify status", `${commandLine("parts", "finish", id)} --reason TEXT`];
  }
}
