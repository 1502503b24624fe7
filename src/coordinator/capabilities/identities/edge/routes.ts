import * as z from "zod";
import { algorithms } from "../../../auth/tokens/forms.ts";
import { cellId, nothing, reason, time, wellFormedText, wholeNumber } from "../../../api/contract/fields.ts";
import { boundedList, boundedRecord } from "../../../api/contract/lists.ts";
import { auditFull, route, unknownCell, type RouteError } from "../../../api/contract/route.ts";
import { role } from "../../../api/contract/schemas.ts";

/** Far more than a deployment needs. All of them together have a limit in bytes, too. */
const MAX_SOURCES = 32;
const MAX_RULES = 4_000;
export const MAX_CLAIMS = 16;
const MAX_VALUES = 64;
const MAX_VALUE_LENGTH = 1_024;
const MAX_JWKS = 16;

const name = z
  .string()
  .regex(
    /^[a-z\d][a-z\d._-]{0,63}$/,
    "must be 1 to 64 of a-z, 0-9, `.`, `_` and `-`, first a letter or digit",
  )
  .meta({ description: "A name that people read, unique in its list." });

const granted = {
  role: z.enum(["cell", "router", "operator", "viewer", "scraper"]),
  cell_id: cellId.optional().meta({ description: "The cell, for the role `cell` only." }),
};

const member = z.string().max(2_048).optional();
const jwk = z
  .strictObject({
    kty: z.enum(["RSA", "EC", "OKP"]),
    kid: z.string().max(256).meta({ description: "The id by which tokens name the key." }),
    alg: member,
    use: member,
    crv: member,
    n: member,
    e: member,
    x: member,
    y: member,
  })
  .meta({ id: "PublicKey", description: "A public key as in a JWK set (RFC 7517)." });

const claimValue = z.string().min(1).max(MAX_VALUE_LENGTH);

const tokenRule = z
  .strictObject({
    claims: boundedRecord(
      MAX_CLAIMS,
      {
        maxProperties: MAX_CLAIMS,
        description:
          "The claims that a token must have: each must have this value, or one of these values. Values " +
          "are compared exactly. A claim that is a list must contain one of them.",
      },
      z.union(
        [claimValue, z.array(claimValue).min(1).max(MAX_VALUES)],
        `must be a text of 1 to ${MAX_VALUE_LENGTH} characters, or a list of 1 to ${MAX_VALUES} of them`,
      ),
    ),
    ...granted,
  })
  .meta({ id: "TokenRule" });

/** Headers that nothing else may be in. Proxies set them from the session of a browser or a program. */
const tokenHeaders = ["cf-access-jwt-assertion"] as const;

const issuer = z
  .strictObject({
    name,
    issuer: wellFormedText(2_048, "The `iss` of its tokens.").meta({
      examples: ["https://token.actions.githubusercontent.com"],
    }),
    audience: wellFormedText(2_048, "What the `aud` of its tokens must be or contain."),
    algorithms: boundedList(z.enum(algorithms), algorithms.length, {
      description: "The algorithms with which its tokens may be signed.",
      min: 1,
    }),
    jwks_url: z
      .string()
      .max(2_048)
      .optional()
      .meta({ description: "Where its public keys are read: https, or http on this machine." }),
    keys: boundedList(jwk, MAX_JWKS, {
      description: "Its public keys, instead of `jwks_url`, if it cannot be reached from here.",
      min: 1,
    }).optional(),
    token_header: z
      .enum(tokenHeaders)
      .optional()
      .meta({
        description:
          "A header in which a proxy sends its tokens. They are then read from there, too, if a request " +
          "has no `Authorization`, but not for pages of other sites. Without it, tokens are only read " +
          "from `Authorization`.",
      }),
    rules: boundedList(tokenRule, MAX_RULES, {
      description: "Who its tokens are. The first rule that fits a token applies.",
    }),
  })
  .meta({ id: "TokenIssuer", description: "An issuer of JSON web tokens (OpenID Connect)." });

const alternativeName = (what: string) => wellFormedText(253, what).optional();

const certificateRule = z
  .strictObject({
    dns: alternativeName("The certificate must have this DNS name, in full."),
    uri: alternativeName("The certificate must have this URI, such as a SPIFFE id, in full."),
    ...granted,
  })
  .meta({ id: "CertificateRule", description: "Has either `dns` or `uri`." });

const authority = z
  .strictObject({
    name,
    certificate: z.string().max(16_384).meta({
      description:
        "The authority's certificate in PEM. It must have signed the clients' certificates itself.",
    }),
    rules: boundedList(certificateRule, MAX_RULES, {
      description: "Who its certificates are. The first rule that fits a certificate applies.",
    }),
  })
  .meta({ id: "CertificateAuthority" });

const lists = {
  issuers: boundedList(issuer, MAX_SOURCES, { description: "The issuers whose tokens are accepted." }),
  authorities: boundedList(authority, MAX_SOURCES, {
    description: "The authorities whose client certificates are accepted.",
  }),
};

const version = wholeNumber.meta({
  description: "Identifies this version of the identities. It grows with each change.",
});

const expiry = z.strictObject({ name, expires_at: time }).meta({ id: "AuthorityExpiry" });

const known = {
  version,
  ...lists,
  authority_expiries: z
    .array(expiry)
    .meta({ description: "When the certificates of the authorities expire, in the same order." }),
};

const change = z
  .strictObject({
    entry: z.string().meta({
      description: "The list and the name of the issuer or authority.",
      examples: ["issuers.forge"],
    }),
    change: z.enum(["add", "remove", "change"]),
  })
  .meta({ id: "IdentityChange" });

const exampleIdentities = {
  issuers: [
    {
      name: "forge",
      issuer: "https://token.actions.githubusercontent.com",
      audience: "https://leasehold.example",
      algorithms: ["RS256" as const],
      jwks_url: "https://token.actions.githubusercontent.com/.well-known/jwks",
      rules: [{ claims: { repository: "acme/operations" }, role: "operator" as const }],
    },
  ],
  authorities: [],
};
const exampleSet = { version: 12, ...exampleIdentities, authority_expiries: [] };

const unreachable: RouteError = { code: "UNAVAILABLE", when: "The directory cannot be reached." };

const MAX_PEM_LENGTH = 65_536;

const explained = z
  .strictObject({
    id: z.string().meta({ description: "What the log has as `key_id`, and what revokes it." }),
    role: role.nullable().meta({ description: "Null: it is refused, or it is a subject of tokens." }),
    cell_id: cellId.nullable(),
    expires_at: time.nullable(),
    refusal: z.string().nullable().meta({ description: "Why it is refused. Null: it is not." }),
  })
  .meta({ id: "ExplainedIdentity" });

export const identityRoutes = {
  getIdentities: route({
    group: "keys",
    method: "GET",
    path: "/v1/admin/identities",
    summary: "Read the identities",
    about: "Reads which certificates and tokens are accepted beside keys, and with which role and cell.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: nothing,
    responses: {
      200: { about: "The identities.", schema: z.strictObject(known), example: exampleSet },
    },
    errors: [unreachable],
    example: {},
  }),
  changeIdentities: route({
    group: "keys",
    method: "PUT",
    path: "/v1/admin/identities",
    summary: "Change the identities",
    about:
      "Replaces which certificates and tokens are accepted. The `version` must be the one that was read, " +
      "otherwise nothing is changed. With `dry_run`, the answer says what would be changed. The change is " +
      "valid everywhere within 30 seconds. To refuse one certificate or one subject of tokens of a cell at " +
      "once, revoke its id like that of a key.",
    roles: ["operator"],
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          version,
          ...lists,
          dry_run: z.boolean().optional().meta({ description: "If true, nothing is changed." }),
          reason: reason.optional(),
        })
        .meta({ id: "IdentitiesChange" }),
      required: true,
    },
    responses: {
      200: {
        about: "The identities as they are now, and what was changed.",
        schema: z.strictObject({ ...known, dry_run: z.boolean(), changes: z.array(change) }),
        example: {
          ...exampleSet,
          dry_run: false,
          changes: [{ entry: "issuers.forge", change: "add" }],
        },
      },
    },
    errors: [
      {
        code: "FAILED_PRECONDITION",
        reason: "CONCURRENT_CHANGE",
        when: "The identities are not those that were read. Read them again.",
      },
      { ...unknownCell, when: "A rule has a cell that is not registered." },
      unreachable,
      auditFull,
    ],
    example: { body: { version: 0, ...exampleIdentities, dry_run: true } },
  }),
  explainIdentity: route({
    group: "keys",
    method: "POST",
    path: "/v1/admin/identities/explain",
    summary: "Explain an identity",
    about:
      "Says who the holder of a client certificate is here, or why it is refused, and which id revokes it. " +
      "For tokens, only the id is known: that of their issuer and subject. Nothing is changed.",
    roles: ["operator", "viewer"],
    params: nothing,
    query: nothing,
    body: {
      schema: z
        .strictObject({
          certificate: z.string().max(MAX_PEM_LENGTH).optional().meta({
            description: "A client certificate in PEM.",
          }),
          issuer: wellFormedText(2_048, "Or the `iss` of tokens, with their `subject`.").optional(),
          subject: wellFormedText(1_024, "The `sub` of the tokens, or else their `common_name`.").optional(),
        })
        .meta({ id: "IdentityQuestion" }),
      required: true,
    },
    responses: {
      200: {
        about: "Who it is.",
        schema: explained,
        example: {
          id: "6ab1f5d2-9b0c-8f43-a1de-0c8f2a94f2b7",
          role: "cell",
          cell_id: "7",
          expires_at: "2026-12-27T10:39:45.000Z",
          refusal: null,
        },
      },
    },
    errors: [unreachable],
    example: { body: { issuer: "https://token.actions.githubusercontent.com", subject: "repo:acme/app" } },
  }),
};
