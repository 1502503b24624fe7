import * as z from "zod";
import { HISTORY_HEADER } from "../capabilities/loss/history.ts";
import { errorCodes } from "../kernel/refusal.ts";
import { shippedTypes } from "../../common/types/shipped.ts";
import { TYPE_SCHEMAS } from "../capabilities/types/edge/deployment-types.ts";
import { HISTORY_FORM } from "../capabilities/loss/edge/history-header.ts";
import { errorsOf, routeIds, routes } from "./contract.ts";
import { parameterNames, type Group, type Route, type RouteError } from "./contract/route.ts";
import { problem } from "./contract/schemas.ts";
import { statusOfReason } from "./problem.ts";
import { EVENT_STREAM, eventText } from "./lines.ts";

type Json = Record<string, unknown>;

const TAGS: Record<Group, string> = {
  leases: "Hold names, then commit or roll back.",
  records: "Which cell owns which name.",
  changes: "What happens to leases and claims, in order.",
  transfers: "Moves of all names of a scope from one cell to another.",
  routing: "Where requests for a name go, and how long a router may keep the answer.",
  verification: "Slots, which limit how many cells verify at the same time.",
  status: "What a cell says of itself: its SDK, its last reconciliation and verification.",
  cells: "The registered cells. For operators.",
  shards: "The number of shards, and how a deployment gets more of them. For operators.",
  operations: "What operators have started, and what has not ended, upgrades included. For operators.",
  keys: "The keys that were made or revoked here. For operators.",
  types: "The types of names, subjects and sources that the deployment has declared. For operators.",
  history: "Who owned a name, and when. For operators.",
  audit: "What operators changed: who, when and why. For operators.",
  webhooks: "Endpoints that are told of events. For operators.",
  parts: "Shards and ledgers that have gone back in time. For operators.",
  service: "Limits, health and this documentation.",
};

/**
 * The contract as an OpenAPI 3.1 document, with the types that Leasehold ships. The same contract always
 * gives the same bytes.
 */
export function openApiOf(version: string): Json {
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const id of routeIds) {
    const route: Route = routes[id];
    paths[route.path] = {
      ...paths[route.path],
      [route.method.toLowerCase()]: operationOf(id, route, components),
    };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Leasehold",
      version,
      summary: "Names that stay unique across cells.",
      description: guide,
    },
    servers: [{ url: "/" }],
    security: [{ key: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({
      name,
      description,
      "x-operations": routeIds.filter((id) => routes[id].group === name),
    })),
    paths,
    components: {
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description:
            "A Leasehold key: `lhk_…`, or a JSON web token of an issuer in the identities. Client " +
            "certificates and tokens that Cloudflare Access adds are accepted instead if the identities " +
            "name them.",
        },
      },
      schemas: components.sorted(),
    },
    "x-error-codes": Object.entries(errorCodes).map(([code, { status, title, retryable }]) => ({
      code,
      status,
      title,
      retryable,
      description: codeAdvice[code as keyof typeof codeAdvice],
    })),
  };
}

function operationOf(operationId: string, route: Route, components: Components): Json {
  const { example, body } = route;
  const parameters = [
    ...parametersOf(route.params, "path", example.params, components).toSorted(
      (a, b) => placeOf(route, a) - placeOf(route, b),
    ),
    ...parametersOf(route.query, "query", example.query, components),
    ...(route.history === true ? [historyParameter] : []),
  ];
  return {
    operationId,
    tags: [route.group],
    summary: route.summary,
    description: route.about,
    ...(route.roles === "anyone" ? { security: [] } : {}),
    "x-roles": route.roles === "anyone" ? [] : route.roles,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: requestBodyOf(body.schema, body.required, example.body, components) }),
    responses: { ...answersOf(route, components), ...problemsOf(errorsOf(route), components) },
    "x-errors": errorsOf(route).map((error) => ({ ...error, status: statusOf(error) })),
  };
}

const historySchema = { type: "string", pattern: HISTORY_FORM.source, maxLength: 33 };

const historyParameter = {
  name: HISTORY_HEADER,
  in: "header",
  required: false,
  description:
    "The newest value that an answer to the cell had. If the cell's ledger does not have it any more, its " +
    "storage went back in time, and the call fails with `HISTORY_LOST`. Ignored for operators, and in " +
    "calls about a transfer to another cell.",
  schema: historySchema,
};

const historyHeaders = {
  [HISTORY_HEADER]: {
    description:
      "How far the cell's ledger has got. Send it with the next call. Absent for operators, and in answers " +
      "about a transfer to another cell.",
    schema: historySchema,
  },
};

const placeOf = (route: Route, parameter: Json): number =>
  parameterNames(route).indexOf(String(parameter["name"]));

function parametersOf(
  schema: z.ZodType,
  location: "path" | "query",
  examples: Readonly<Record<string, string>> = {},
  components: Components,
): Json[] {
  const { properties, required } = components.inline(schema, "input") as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties ?? {}).map(([name, { description, ...type }]) => ({
    name,
    in: location,
    required: required?.includes(name) ?? false,
    ...(description === undefined ? {} : { description }),
    ...(type["type"] === "array" ? { style: "form", explode: true } : {}),
    schema: type,
    ...(examples[name] === undefined ? {} : { example: exampleOf(type, examples[name]) }),
  }));
}

/** Returns an example of the parameter's type. The contract has it as it is written in a URL. */
const exampleOf = ({ type }: Json, text: string): unknown => (type === "integer" ? Number(text) : text);

const requestBodyOf = (
  schema: z.ZodType,
  required: boolean,
  example: unknown,
  components: Components,
): Json => ({
  required,
  content: {
    "application/json": {
      schema: components.inline(schema, "input"),
      ...(example === undefined ? {} : { example }),
    },
  },
});

function answersOf({ responses, history, events }: Route, components: Components): Json {
  const answers = Object.entries(responses).map(
    ([
      status,
      { about, schema, mediaType = "application/json", alternatives = {}, lines, cached, example },
    ]) => {
      const shown =
        lines === true && Array.isArray(example)
          ? example.map((line) => JSON.stringify(line)).join("\n")
          : example;
      const described = components.inline(schema, "output");
      const content = {
        schema: lines === true ? streamOf(described, mediaType) : described,
        ...(shown === undefined ? {} : { example: shown }),
      };
      const others = Object.entries(alternatives).map(([type, each]) => [
        type,
        { schema: described, example: each },
      ]);
      const headers = {
        ...(history === true ? historyHeaders : {}),
        ...(cached === undefined
          ? {}
          : { "Cache-Control": { description: cached, schema: { type: "string" } } }),
      };
      return [
        status,
        {
          description: about,
          ...(Object.keys(headers).length === 0 ? {} : { headers }),
          content: {
            [mediaType]: content,
            ...Object.fromEntries(others),
            ...(events && eventsOf(events, components)),
          },
        },
      ];
    },
  );
  return Object.fromEntries(answers) as Json;
}

/** OpenAPI 3.1 has no schema for a stream of documents, so the stream is a string, and its content a list. */
const streamOf = (line: Json, mediaType: string): Json => ({
  type: "string",
  contentMediaType: mediaType,
  contentSchema: { type: "array", items: line },
});

const eventsOf = ({ schema, example }: NonNullable<Route["events"]>, components: Components): Json => ({
  [EVENT_STREAM]: {
    schema: streamOf(components.inline(schema, "output"), EVENT_STREAM),
    example: example.map((event) => eventText(event)).join(""),
  },
});

/** OpenAPI has one response per status, so its description lists the codes and reasons. */
function problemsOf(errors: readonly RouteError[], components: Components): Json {
  const schema = components.inline(problem, "output");
  const byStatus = Map.groupBy(errors, statusOf);
  return Object.fromEntries(
    [...byStatus].map(([status, each]) => [
      String(status),
      {
        description: each.map(({ code, reason, when }) => `${reason ?? code}: ${when}`).join("\n"),
        ...(WAITS.has(status) ? { headers: { "Retry-After": retryAfter } } : {}),
        content: { "application/problem+json": { schema } },
      },
    ]),
  );
}

/** Statuses that may have `Retry-After`. Of the 409s, only ABORTED has it. */
const WAITS: ReadonlySet<number> = new Set([409, 429, 503]);

const retryAfter = {
  description: "Seconds to wait before trying again. Sent only if waiting helps.",
  schema: { type: "integer", minimum: 1 },
};

const statusOf = ({ code, reason, status }: RouteError): number =>
  status ?? (reason && statusOfReason[reason]) ?? errorCodes[code].status;

/** Collects the named schemas, which are written once and referred to. */
class Components {
  readonly #schemas = new Map<string, Json>();

  inline(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs,
      ...made
    } = z.toJSONSchema(schema, { target: "draft-2020-12", io }) as Json & { $defs?: Record<string, Json> };
    for (const [name, definition] of Object.entries($defs ?? {})) this.#add(name, definition);
    return relinked(made) as Json;
  }

  #add(name: string, definition: Json): void {
    const linked = withNames(name, relinked(definition) as Json);
    const known = this.#schemas.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(linked))
      throw new Error(`two different schemas have the id ${name}; rename one of them`);
    this.#schemas.set(name, linked);
  }

  sorted(): Json {
    return Object.fromEntries([...this.#schemas].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** The schemas of the names of types list the types that Leasehold ships. */
function withNames(name: string, schema: Json): Json {
  const kind = TYPE_SCHEMAS[name];
  if (kind === undefined) return schema;
  const { pattern: _, ...rest } = schema;
  return { ...rest, enum: shippedTypes.names(kind) };
}

const relinked = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema), (key, value: unknown) =>
    key === "$ref" && typeof value === "string" ? value.replace("#/$defs/", "#/components/schemas/") : value,
  );

/**
 * The guide at the beginning of the reference: what holds for all routes. Markdown, as openapi.json has it.
 */
const guide = `
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
const codeAdvice = {
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
