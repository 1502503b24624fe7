import type { Client, Key } from "../../client/index.ts";
import type { Context } from "../framework/context.ts";
import type { LimitOption } from "../framework/arguments.ts";
import { durationText } from "../../text/duration.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../text/shell-word.ts";

interface ListOptions extends LimitOption {
  role?: Key["role"];
  cell?: string;
  expiresIn?: number;
}

export async function listKeys(context: Context, options: ListOptions): Promise<Result> {
  const nowMs = context.io.now();
  const { items, isCut } = await take(keysOf(await context.client(), options, nowMs), options.limit);
  const ending =
    options.expiresIn === undefined ? undefined : items.find((key) => stateOf(key, nowMs) === "VALID");
  return listResult<Key>({
    name: "keys",
    items,
    isCut,
    columns: [
      { title: "ID", value: ({ id }) => id },
      { title: "ROLE", value: ({ role }) => role },
      { title: "CELL", value: ({ cell_id: cell }) => cell },
      { title: "STATE", value: (key) => stateOf(key, nowMs) },
      { title: "EXPIRES IN", value: (key) => restOf(key, nowMs), isNumber: true },
      { title: "NOTE", value: ({ note }) => note },
    ],
    empty: "There are no such keys.",
    nextSteps: ending === undefined ? [] : [commandLine("keys", "rotate", ending.id)],
  });
}

async function* keysOf(
  client: Client,
  { role, cell, expiresIn }: ListOptions,
  nowMs: number,
): AsyncGenerator<Key> {
  for await (const key of client.keys.list()) {
    if (role !== undefined && key.role !== role) continue;
    if (cell !== undefined && key.cell_id !== cell) continue;
    if (expiresIn !== undefined && Date.parse(key.expires_at) > nowMs + expiresIn * 1_000) continue;
    yield key;
  }
}

function stateOf({ revoked_at: revokedAt, expires_at: expiresAt }: Key, nowMs: number): string {
  if (revokedAt !== null) return "REVOKED";
  return Date.parse(expiresAt) <= nowMs ? "EXPIRED" : "VALID";
}

const restOf = (key: Key, nowMs: number): string | null =>
  stateOf(key, nowMs) === "VALID" ? durationText(Date.parse(key.expires_at) - nowMs) : null;
