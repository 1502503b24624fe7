/**
 * The guide at the beginning of the reference: what holds for all routes. Markdown, as openapi.json has it.
 */
export const guide = `
Leasehold keeps names globally unique across independent cells. A cell asks for a *lease* on the names that it
is about to create or give up, saves its own rows, then commits the lease or rolls it back. Routers look up
which cell owns a name.

## Keys

Send a key with every call: \`Authorization: Bearer lhk_…\`. A key has one role. A **cell** key may use the
paths of its own cell, look up names, and take part in transfers. A **router** key may look up names, and read
the reports of shards. An **operator** key may do everything. A **viewer** key may read what operators may
read. A **scraper** key may read the metrics. A **bridge** key may call nothing itself: \`leasehold grpc\`
sends it with its clients' certificates. The key says which cell calls; the body never does. In the examples,
\`$LEASEHOLD_URL\` is the address of this deployment, and \`$KEY\` is your key.

## Requests

Bodies are JSON in UTF-8, with \`Content-Type: application/json\`, not compressed. Unknown fields, duplicate
keys and values of the wrong type are refused, and \`field\` in the answer names the place, such as
\`creates[3].bucket.value\`. Ids of subjects and sources are strings, or integers that JSON represents
exactly; in answers they are strings. Times are RFC 3339; in answers they are in UTC with milliseconds.
\`GET /v1/limits\` lists every limit.

## Names

A name is a bucket type and a value. Two values of a bucket type are the same name if their canonical forms
(NFKC and case folding) are equal, so \`GitLab-Org\` and \`gitlab-org\` are one name. Answers show the
spelling that was given. Control characters, invisible characters and bidirectional controls are refused.
Usernames and paths also refuse mixtures of scripts that look alike.

## Leases

\`PUT /v1/cells/{cell}/leases/{uuid}\` begins a lease under an id of your choice: it holds all names of the
batch, or none. Then \`commit\` or \`rollback\` decides the lease. The first decision wins and is final, and
the same decision again succeeds. The coordinator never rolls back a granted lease by itself, because only you
know what you have saved. If an answer is lost, repeat the call with the same id. If you give up on a begin,
roll its id back.

## Pages

Lists answer \`next_page_token\`. To get the next page, send it as \`page_token\` with the same path, the same
filters, and a key of the same role and cell. It is empty on the last page.

## Errors

Every 4xx and 5xx answer is a problem (RFC 9457): \`application/problem+json\` with a \`code\` from a fixed
list, sometimes a finer \`reason\`, and \`retryable\`, which says whether the same call may succeed later,
unchanged. Decide by \`code\` and \`reason\`; \`detail\` is for people. \`Retry-After\` is sent if waiting
helps. Every answer has an \`X-Request-Id\`. If you send one of your own, the log has both.
`.trim();

/** What each error code means for a caller, and what to do about it. */
export const codeAdvice = {
  INVALID_ARGUMENT:
    "The request is not valid: for example an unknown field or value, an empty batch, a name given " +
    "twice, or a page token of another call. Correct it; `field` names the place. With status 405, the " +
    "path doesn't support the method (see `Allow`). With 415, the body is not JSON or is compressed.",
  UNAUTHENTICATED: "The key is missing, not valid, expired or revoked. Get a valid key.",
  PERMISSION_DENIED:
    "The key's role or cell may not call the route. Use another key. Nothing is looked up before this " +
    "check, so the answer doesn't reveal what exists.",
  NOT_FOUND:
    "There is no such route, record, lease, cell or key. Another cell's lease looks like a lease that " +
    "doesn't exist.",
  ALREADY_EXISTS:
    "At least one name to create is taken. Choose another name; `conflicts` lists every op that is in " +
    "the way. With `CELL_EXISTS`, the cell is registered already.",
  FAILED_PRECONDITION:
    "The current state doesn't allow the call, and waiting doesn't help. For example, a name belongs to " +
    "another cell, the lease was decided otherwise, its id was used for another batch, or the cell is " +
    "frozen. See `reason` and `conflicts`.",
  ABORTED:
    "Only leases are in the way. Nothing was granted. Try again after `Retry-After`, with the same id " +
    "or a new one.",
  RESOURCE_EXHAUSTED:
    "A limit is reached. With status 429, try again after `Retry-After`. With 413, send less. With 408, " +
    "the body took too long to arrive; send it again.",
  INTERNAL:
    "The coordinator failed unexpectedly. The outcome of a begin, commit or rollback is unknown: repeat " +
    "the call with the same lease id.",
  UNAVAILABLE:
    "A part of the coordinator cannot be reached. Don't treat it as 'not found'. The outcome of a " +
    "begin, commit or rollback is unknown: repeat the call with the same lease id after `Retry-After`.",
  DEADLINE_EXCEEDED:
    "There was no answer in time. The outcome of a begin, commit or rollback is unknown: repeat the " +
    "call with the same lease id.",
} as const;
