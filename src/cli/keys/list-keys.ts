import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { credentialsOf, readUses, type Credential } from "./credentials.ts";

interface ListOptions extends LimitOption {
  kind?: Credential["kind"];
  role?: Credential["role"];
  cell?: string;
  expiresIn?: number;
}

const USES_UNKNOWN =
  "The certificates and tokens that were used, and the last uses of keys, can't be read now. " +
  "Try again later.";

export async function listKeys(context: Context, options: ListOptions): Promise<Result> {
  const nowMs = context.io.now();
  const client = await context.client();
  const uses = await readUses(client);
  const { items, isCut } = await take(
    select(credentialsOf(client, uses, nowMs), options, nowMs),
    options.limit,
  );
  const ending = options.expiresIn === undefined ? undefined : items.find(canRotate)?.id;
  return listResult<Credential>({
    name: "credentials",
    items,
    isCut,
    columns: [
      { title: "KIND", value: ({ kind }) => kind },
      { title: "ID", value: ({ id }) => id },
      { title: "ROLE", value: ({ role }) => role },
      { title: "CELL", value: ({ cell_id: cell }) => cell },
      { title: "STATE", value: ({ state }) => state },
      { title: "EXPIRES IN", value: (credential) => restOf(credential, nowMs), isNumber: true },
      {
        title: "LAST USED",
        value: ({ last_used_at: at }) => at?.slice(0, "2026-11-27T10:00".length) ?? null,
      },
      { title: "ISSUED BY", value: ({ issued_by: by }) => by },
      { title: "NAME", value: ({ name }) => name },
    ],
    empty: "There are no such keys, certificates or tokens.",
    nextSteps: ending == null ? [] : [commandLine("keys", "rotate", ending)],
    ...(uses === undefined ? { notes: [USES_UNKNOWN], exitCode: exitCodes.unavailable } : {}),
  });
}

/** Of a key that was made offline, only its uses are known. */
const canRotate = ({ kind, state, created_at: madeAt }: Credential): boolean =>
  kind === "key" && state === "VALID" && madeAt !== null;

async function* select(
  credentials: AsyncIterable<Credential>,
  { kind, role, cell, expiresIn }: ListOptions,
  nowMs: number,
): AsyncGenerator<Credential> {
  for await (const credential of credentials) {
    if (kind !== undefined && credential.kind !== kind) continue;
    if (role !== undefined && credential.role !== role) continue;
    if (cell !== undefined && credential.cell_id !== cell) continue;
    const { expires_at: expiresAt } = credential;
    if (expiresIn !== undefined && (expiresAt === null || Date.parse(expiresAt) > nowMs + expiresIn * 1_000))
      continue;
    yield credential;
  }
}

const restOf = ({ state, expires_at: at }: Credential, nowMs: number): string | null =>
  at === null || state === "REVOKED" || state === "EXPIRED" ? null : durationText(Date.parse(at) - nowMs);
