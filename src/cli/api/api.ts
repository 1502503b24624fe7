import { readFile } from "node:fs/promises";
import { messageOf, usageError, exitCodes, type ExitCode } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { escapeLines, toJson } from "../../common/text/escape.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";

interface ApiOptions extends ChangeOptions {
  data?: string;
  include?: boolean;
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/** Calls with a body that only read. */
const READS = /^\/v1\/(records\/lookup|route|classify|cells\/\d+\/records\/digests)(\?|$)/;

/** More than the largest body that a coordinator takes. */
const MAX_BODY_BYTES = 8_388_608;

/** Reconciliations take two minutes. */
const TIMEOUT_MS = 130_000;

const SHOWN_HEADERS = ["content-type", "retry-after", "x-request-id", "date", "age", "cache-control"];

export async function api(
  context: Context,
  givenMethod: string,
  path: string,
  options: ApiOptions,
): Promise<Result> {
  const method = givenMethod.toUpperCase();
  if (!METHODS.includes(method)) throw usageError(`METHOD must be one of ${METHODS.join(", ")}`);
  const isRead = method === "GET" || method === "HEAD" || (method === "POST" && READS.test(path));
  const reason = isRead ? "" : reasonOf(options);
  const body = await bodyOf(context, options.data);
  if (options.dryRun === true) return wouldSend(method, path, body);
  if (!isRead) {
    const { url } = await context.target();
    await confirm(context, options, {
      name: method,
      effect: `This sends ${method} ${path} to ${url}, because: ${reason}`,
    });
  }
  const answer = await context.send({ method, path, body, timeoutMs: TIMEOUT_MS });
  const headers = SHOWN_HEADERS.flatMap((name) => {
    const value = answer.header(name);
    return value === null ? [] : [`${name}: ${value}`];
  });
  const json = jsonOf(answer.text);
  return {
    document: { status: answer.status, body: json ?? answer.text },
    lines: [isObject(json) ? json : { body: json ?? answer.text }],
    text: () => (json === undefined ? escapeLines(answer.text.trimEnd()) : toJson(json, 2)),
    notes: options.include === true ? [`HTTP ${answer.status}`, ...headers] : [],
    exitCode: exitCodeOf(answer.status),
  };
}

const wouldSend = (method: string, path: string, body: string | undefined): Result => ({
  document: { dry_run: true, method, path, body: body === undefined ? null : jsonOf(body) },
  text: () => `Would send ${method} ${path}${body === undefined ? "" : ` with\n${escapeLines(body)}`}`,
  notes: ["Nothing was sent."],
});

async function bodyOf({ io }: Context, data: string | undefined): Promise<string | undefined> {
  if (data === undefined) return undefined;
  const text =
    data === "@-" ? await io.readInput() : data.startsWith("@") ? await readBody(data.slice(1)) : data;
  if (Buffer.byteLength(text) > MAX_BODY_BYTES)
    throw usageError(`--data is larger than ${MAX_BODY_BYTES} bytes`);
  try {
    JSON.parse(text);
  } catch (error) {
    throw usageError(`--data is not JSON: ${messageOf(error)}`);
  }
  return text;
}

const readBody = (file: string): Promise<string> =>
  readFile(file, "utf8").catch((error: unknown) => {
    throw usageError(`--data cannot be read: ${messageOf(error)}`);
  });

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The exit code for an answer that may come from a proxy, so without a problem document. */
function exitCodeOf(status: number): ExitCode {
  if (status >= 200 && status < 300) return exitCodes.ok;
  if (status === 429 || status >= 500) return exitCodes.unavailable;
  return byStatus[status] ?? exitCodes.failed;
}

const byStatus: Readonly<Record<number, ExitCode>> = {
  400: exitCodes.usage,
  401: exitCodes.notAllowed,
  403: exitCodes.notAllowed,
  404: exitCodes.notFound,
  409: exitCodes.conflict,
  412: exitCodes.conflict,
  413: exitCodes.usage,
  422: exitCodes.usage,
};
