/** What holds for every route; the beginning of the reference. */
export const guide = `Leasehold keeps names globally unique across independent cells. A cell asks for a *lease* on the names it is about to create or destroy, saves its own rows, then commits the lease or rolls it back. Routers ask which cell owns a name.

## Keys
Send a key with every call: \`Authorization: Bearer lhk_…\`. A key has one role. A **cell** key uses its own cell's paths and looks names up. A **router** key looks names up. An **operator** key does everything. Which cell calls is read from the key, never from the body.

## Requests
JSON in UTF-8, as \`Content-Type: application/json\`. Unknown fields, keys given twice and values of the wrong type are refused, and the answer's \`field\` names the place, such as \`creates[3].bucket.value\`. Ids of subjects and sources are strings or integers that JSON carries exactly; in answers they are strings. Times are RFC 3339, in answers always in UTC with milliseconds. Every limit is listed by \`GET /v1/limits\`.

## Names
A name is a bucket type and a value. Two values are the same name when their canonical forms are equal: NFKC and case folding, so \`GitLab-Org\` and \`gitlab-org\` are one name. The spelling you typed is kept and shown. Control, invisible and bidirectional characters are refused; usernames and paths also refuse mixtures of scripts that look alike.

## Leases
\`PUT /v1/cells/{cell}/leases/{uuid}\` begins a lease under an id of your choice. All names of the batch are held, or none. Then \`commit\` or \`rollback\`: the first decision wins and is final, and the same one again succeeds. Nothing ever rolls a granted lease back by itself, because only you know what you have saved. So when an answer is lost, repeat the call with the same id; when you give up on a begin, roll its id back.

## Pages
Lists answer \`next_page_token\`. Send it as \`page_token\`, with the same query and a key of the same role and cell, to get the next page; on the last page it is empty.

## Errors
Every 4xx and 5xx answer is a problem (RFC 9457): \`application/problem+json\` with a \`code\` from a closed list, sometimes a finer \`reason\`, and \`retryable\`, which says whether the same call may succeed later unchanged. \`Retry-After\` is sent where waiting helps. Every answer carries \`X-Request-Id\`; send your own to find it again.`;

/** What a caller should do about a code: the rest is in the route's own list. */
export const codeAdvice = {
  INVALID_ARGUMENT:
    "The request is malformed: an unknown field or value, an empty batch, a name given twice, a bad page token. Correct it. The same code comes with 405 (see `Allow`) and 415.",
  UNAUTHENTICATED:
    "There is no key, or it is not valid here, has expired or was revoked. Every bad key looks the same. Get a new one.",
  PERMISSION_DENIED:
    "The key's role or cell does not fit the route. Decided before anything is looked up, so it tells nothing about what exists.",
  NOT_FOUND:
    "No such route, record, lease, cell or key. Another cell's lease looks exactly like one that does not exist.",
  ALREADY_EXISTS:
    "At least one name to create is taken. `conflicts` lists every op that stands in the way. Choose another name.",
  FAILED_PRECONDITION:
    "The state does not allow it, and waiting will not help: a name is not yours, the lease was decided otherwise, its id was used for another batch, or the cell is frozen. See `reason` and `conflicts`.",
  ABORTED:
    "All that stands in the way are leases of others, and those end. Nothing was written. Try again after `Retry-After`.",
  RESOURCE_EXHAUSTED: "A limit is reached. With 429, try again after `Retry-After`; with 413, send less.",
  INTERNAL: "A fault on our side. For a begin, the outcome is not known: repeat it with the same lease id.",
  UNAVAILABLE:
    "A part cannot be reached. Never means that something does not exist. For a begin, the outcome is not known: repeat it with the same lease id.",
  DEADLINE_EXCEEDED:
    "There was no answer in time. For a begin, the outcome is not known: repeat it with the same lease id.",
} as const;
