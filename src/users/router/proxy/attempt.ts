/** One request to one cell. */
import { failureOf, type FailureKind, type ProxyFailure } from "./failure.ts";
import { requestHeaders, type Forwarding, type RouteFacts } from "./headers.ts";
import type { ProxySettings } from "./options.ts";
import type { Upload } from "./upload.ts";

export type AttemptResult =
  | { readonly kind: "answered"; readonly response: Response }
  | { readonly kind: "failed"; readonly failure: ProxyFailure };

export interface Target {
  readonly rule: string;
  readonly address: string;
  readonly facts: RouteFacts;
}

/**
 * As the Fetch standard says, `fetch` adds `Cache-Control: no-cache` to a request with `If-None-Match` or the
 * like, and then many cells never answer 304. With another cache mode than the default, it adds nothing. This
 * one makes no difference otherwise, because `fetch` has no cache outside of browsers. Workers refuse it, and
 * add nothing by themselves.
 */
const CACHE_MODE = supported({ cache: "force-cache" });

/** Empty if the runtime refuses the option. */
function supported(init: object): object {
  try {
    void new Request("https://cell.invalid", init);
    return init;
  } catch {
    return {};
  }
}

/**
 * Sends a request to a cell and waits for the beginning of its answer. It is never sent again from here: the
 * cell may have done what it asks for.
 */
export async function attempt(
  request: Request,
  upload: Upload | null,
  { rule, address, facts }: Target,
  forwarding: Forwarding,
  settings: Pick<ProxySettings, "fetch" | "originOf" | "answerTimeoutMs" | "uploadTimeoutMs">,
): Promise<AttemptResult> {
  const about = { rule, cell: facts.cell };
  const fail = (kind: FailureKind, detail: string, error?: unknown): AttemptResult => ({
    kind: "failed",
    failure: failureOf(kind, detail, { ...about, ...(error === undefined ? {} : { error }) }),
  });
  const gone = (): AttemptResult => fail("client_gone", "the client closed the request");
  if (request.signal.aborted) return gone();
  const origin = settings.originOf(address);
  if (origin === null)
    return fail("unusable_address", `the address of cell ${facts.cell} is not a bare https origin`);
  const { pathname, search, origin: own } = forwarding.url;
  if (origin === own)
    return fail("unusable_address", `the address of cell ${facts.cell} is that of the router itself`);
  const control = new AbortController();
  let isLate = false;
  const timer = setTimeout(
    () => {
      isLate = true;
      control.abort();
    },
    upload === null ? settings.answerTimeoutMs : settings.uploadTimeoutMs,
  );
  const headers = requestHeaders(request, facts, forwarding);
  // A cell may refuse a body that is too long before it has read it.
  if (upload !== null && upload.lengthBytes !== null)
    headers.set("content-length", String(upload.lengthBytes));
  const init: object = {
    method: request.method,
    headers,
    redirect: "manual",
    ...CACHE_MODE,
    // Cheaper in workerd than a listener of the request's signal.
    signal: AbortSignal.any([request.signal, control.signal]),
    ...(upload === null ? {} : { body: upload.body, duplex: "half" }),
  };
  try {
    // A path must not be resolved against the origin: `//host` would name another host.
    return { kind: "answered", response: await settings.fetch(`${origin}${pathname}${search}`, init) };
  } catch (error) {
    if (request.signal.aborted || upload?.isBroken === true) return gone();
    if (isLate) return fail("timeout", `cell ${facts.cell} sent no answer in time`);
    return fail("unreachable", `the connection to cell ${facts.cell} failed`, error);
  } finally {
    clearTimeout(timer);
  }
}
