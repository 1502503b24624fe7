/**
 * Serves binary calls of Connect without the handler of Connect-ES, which makes two signals, four copies of
 * headers and a stream for every call. What the protocol says about errors and deadlines comes from functions
 * of Connect-ES.
 */
import type { Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  createDeadlineSignal,
  createLinkedAbortController,
  createMethodSerializationLookup,
  validateReadWriteMaxBytes,
} from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import type { Incoming } from "../api/incoming.ts";
import { methods, type WireMethod } from "./methods.ts";
import type { Caller } from "./wire-call.ts";
import { jsonOptions } from "./wire-message.ts";
import type { Result } from "../kernel/refusal.ts";
import { invalid } from "../api/batch.ts";
import { GRPC_TIMEOUT, GRPC_TIMEOUT_FORM, grpcTimeoutMs } from "./grpc-timeout.ts";

interface Binary {
  read: (message: Uint8Array) => Message;
  write: (message: Message) => Uint8Array;
}

const limits = validateReadWriteMaxBytes(undefined, undefined, undefined);

const binaries: ReadonlyMap<WireMethod, Binary> = new Map(
  methods.map((method) => {
    const both = createMethodSerializationLookup(method.desc, undefined, undefined, limits);
    const [input, output] = [both.getI(true), both.getO(true)];
    return [method, { read: (bytes) => input.parse(bytes), write: (message) => output.serialize(message) }];
  }),
);

/** Whether a request is such a call, by its headers. All other spellings of the type go to Connect-ES. */
const isFor = (incoming: Incoming): boolean =>
  incoming.method === "POST" && incoming.header("content-type") === "application/proto";

interface BinaryAnswer {
  status: number;
  header: Record<string, string>;
  body: Uint8Array;
}

/** A message without compression and in the newest form, and who sent it. */
interface BinaryCall {
  message: Uint8Array;
  isOldest: boolean;
  caller: Caller;
}

/** Answers a call. Undefined: nothing was done, because Connect-ES must refuse the call. */
async function answer(
  method: WireMethod,
  sent: Incoming,
  { message, isOldest, caller }: BinaryCall,
): Promise<BinaryAnswer | undefined> {
  const requestHeader = { get: (name: string) => sent.header(name) ?? null };
  const binary = binaries.get(method);
  const { timeoutMs, error } = parseTimeout(requestHeader.get("connect-timeout-ms"), MAX_TIMEOUT_MS);
  const request = error === undefined && binary && read(binary, message);
  if (!request) return undefined;
  const waiting = timeoutMs === undefined ? undefined : startWaiting(timeoutMs, sent.closed);
  try {
    const context = { caller, requestHeader, isOldest, deadline: waiting?.deadline };
    return answerOf(200, "application/proto", binary.write(await method.call(request, context)));
  } catch (fault) {
    if (!(fault instanceof ConnectError)) throw fault;
    const body = errorToJsonBytes(fault, jsonOptions);
    return answerOf(codeToHttpStatus(fault.code), "application/json", body);
  } finally {
    waiting?.stop();
  }
}

/** An object, so that a test can replace its functions. */
export const connectBinary = { isFor, answer };

function read({ read: decode }: Binary, message: Uint8Array): Message | undefined {
  try {
    return decode(message);
  } catch {
    return undefined;
  }
}

const answerOf = (status: number, type: string, body: Uint8Array): BinaryAnswer => ({
  status,
  header: { "content-length": String(body.length), "content-type": type },
  body,
});

/** The deadline also passes when the caller goes away. */
function startWaiting(timeoutMs: number, gone: AbortSignal): { deadline: AbortSignal; stop: () => void } {
  const timer = createDeadlineSignal(timeoutMs);
  const either = createLinkedAbortController(timer.signal, gone);
  return {
    deadline: either.signal,
    stop: () => {
      timer.cleanup();
      either.abort();
    },
  };
}

/** No deadline may be later than this. */
export const MAX_TIMEOUT_MS = 600_000;

/** Returns why the deadline of a call is refused (W4). Undefined: it has none, or a good one. */
export function deadlineFault(incoming: Incoming): Result<never> | undefined {
  const isGrpc = incoming.header("content-type")?.startsWith("application/grpc") === true;
  const name = isGrpc ? GRPC_TIMEOUT : "connect-timeout-ms";
  const sent = incoming.header(name);
  if (sent === undefined) return undefined;
  const timeoutMs = isGrpc ? grpcTimeoutMs(sent) : /^\d{1,10}$/.test(sent) ? Number(sent) : undefined;
  if (timeoutMs === undefined) return invalid(name, isGrpc ? GRPC_TIMEOUT_FORM : "must be 1 to 10 digits");
  return timeoutMs > MAX_TIMEOUT_MS ? invalid(name, "must be at most 10 minutes") : undefined;
}
