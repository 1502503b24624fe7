import type * as z from "zod";
import { asciiLowerCase } from "../../../auth/ascii-lower-case.ts";
import { jwksUrlFault } from "../../../auth/tokens/forms.ts";
import { readKeys } from "../../../auth/tokens/public-keys.ts";
import { tokenIdOf } from "../../../auth/made-key-id.ts";
import { cellRemoved } from "../../../kernel/cell-removed.ts";
import {
  cellsOf,
  MAX_IDENTITIES_BYTES,
  type Authority,
  type Grant,
  type Identities,
  type IdentitySet,
  type Issuer,
} from "../identities.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { timeOf } from "../../../api/answers.ts";
import { invalid } from "../../../api/batch.ts";
import { MAX_CLAIMS, identityRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import { cellIn, type DirectoryView } from "../../../isolate/directory-copy.ts";
import type { Handlers } from "../../../api/handler.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { sentence } from "../../../api/problem.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";

type Body = z.output<(typeof identityRoutes)["changeIdentities"]["body"]["schema"]>;
type ApiIdentities = z.input<(typeof identityRoutes)["getIdentities"]["responses"][200]["schema"]>;
type ApiIssuer = ApiIdentities["issuers"][number];
type ApiChange = z.input<
  (typeof identityRoutes)["changeIdentities"]["responses"][200]["schema"]
>["changes"][number];

const identityHandlers: Handlers<typeof identityRoutes> = {
  async getIdentities({ deployment }) {
    // Not from a copy, because a change is based on what is answered.
    const read = await deployment.directory.read();
    return read.ok ? ok({ status: 200, body: toApi(read.value.identities) }) : read;
  },

  async changeIdentities(call) {
    const { deployment, body } = call;
    const { limits } = deployment.config;
    const fault = reasonFault(body.reason, limits);
    if (fault !== undefined) return fault;
    const wanted = await identitiesOf(body, deployment.clock.now());
    if (!wanted.ok) return wanted;
    const read = await deployment.directory.read();
    if (!read.ok) return read;
    const before = read.value.identities;
    const changes = changesOf(before, wanted.value);
    if (body.dry_run === true)
      return (
        refusalOfCells(read.value, wanted.value) ??
        ok({ status: 200, body: { ...toApi(before), dry_run: true, changes } })
      );
    const changed = await reach(
      readTimeoutMs(limits),
      { name: DIRECTORY, advice: "the identities may have been changed; read them, or repeat the call" },
      () =>
        deployment.objects.directory().changeIdentities({
          ...deployment.envelope,
          operator: operatorOf(call, body.reason),
          position: body.version,
          identities: wanted.value,
        }),
    );
    // Also after an unknown outcome.
    deployment.directory.expire();
    return changed.ok
      ? ok({ status: 200, body: { ...toApi(changed.value), dry_run: false, changes } })
      : changed;
  },

  async explainIdentity({ deployment, body: { certificate, issuer, subject } }) {
    if (certificate !== undefined) {
      if (issuer !== undefined || subject !== undefined)
        return invalid("certificate", "must not be beside `issuer` or `subject`");
      const explained = await explainCertificate(deployment, certificate);
      return explained.ok ? ok({ status: 200, body: explained.value }) : explained;
    }
    if (issuer === undefined) return invalid("issuer", "or `certificate` is required");
    if (subject === undefined) return invalid("subject", "is required beside `issuer`");
    const explained = await explainSubject(deployment, issuer, subject);
    return explained.ok ? ok({ status: 200, body: explained.value }) : explained;
  },
};

type Explained = z.input<(typeof identityRoutes)["explainIdentity"]["responses"][200]["schema"]>;

const NOBODY = { role: null, cell_id: null, expires_at: null };
const REVOKED = "It is revoked.";

async function explainCertificate(deployment: Deployment, pem: string): Promise<Result<Explained>> {
  const { derOfPem } = await import("../../../auth/certificates/authority.ts");
  const { certificateIdOf } = await import("../../../auth/certificates/certificate-verifier.ts");
  const der = derOfPem(pem);
  if (typeof der === "string") return invalid("certificate", `is not valid: ${der}`);
  const id = certificateIdOf(der);
  if (id === undefined) return invalid("certificate", "cannot be read, or is larger than 16 KiB");
  const read = await deployment.directory.read();
  if (!read.ok) return read;
  const { identities, revokedKeys } = read.value;
  const verifier = await deployment.verifiers.certificates();
  const principal = await verifier.verify(der, identities, deployment.clock.now());
  if (!principal.ok) return ok({ id, ...NOBODY, refusal: sentence(principal.refusal.detail) });
  const { role, cell, expiresAtMs } = principal.value;
  const refusal = revokedKeys.has(id) ? REVOKED : null;
  return ok({ id, role, cell_id: cell, expires_at: timeOf(expiresAtMs), refusal });
}

/** Of tokens, only the id is known without one of them. */
async function explainSubject(
  deployment: Deployment,
  issuer: string,
  subject: string,
): Promise<Result<Explained>> {
  const read = await deployment.directory.read();
  if (!read.ok) return read;
  const { identities, revokedKeys } = read.value;
  const id = tokenIdOf(issuer, subject);
  const isAccepted = identities.issuers.some((each) => each.issuer === issuer);
  const refusal = revokedKeys.has(id) ? REVOKED : isAccepted ? null : "The issuer is not accepted.";
  return ok({ id, ...NOBODY, refusal });
}

/** Why the directory would refuse the identities for a cell that they name. */
function refusalOfCells(view: DirectoryView, identities: Identities): Refused | undefined {
  for (const id of cellsOf(identities)) {
    const cell = cellIn(ok(view), id);
    if (!cell.ok) return cell;
    if (cell.value.removedAtMs !== null) return cellRemoved(id);
  }
  return undefined;
}

type Refused = ReturnType<typeof cellRemoved>;

async function identitiesOf(body: Body, nowMs: number): Promise<Result<Identities>> {
  for (const list of ["issuers", "authorities"] as const) {
    const names = body[list].map(({ name }) => name);
    const index = names.findIndex((name, at) => names.indexOf(name) !== at);
    if (index >= 0) return invalid(`${list}[${index}].name`, "is the name of another entry, too");
  }
  const issuers: Issuer[] = [];
  for (const [index, given] of body.issuers.entries()) {
    const issuer = issuerOf(given, `issuers[${index}]`);
    if (!issuer.ok) return issuer;
    issuers.push(issuer.value);
  }
  const authorities: Authority[] = [];
  for (const [index, given] of body.authorities.entries()) {
    const authority = await authorityOf(given, `authorities[${index}]`, nowMs);
    if (!authority.ok) return authority;
    authorities.push(authority.value);
  }
  const identities = { issuers, authorities };
  const bytes = new TextEncoder().encode(JSON.stringify(identities)).length;
  return bytes <= MAX_IDENTITIES_BYTES
    ? ok(identities)
    : invalid("body", `has ${bytes} bytes of identities; at most ${MAX_IDENTITIES_BYTES} are kept`);
}

function issuerOf(
  { jwks_url: url, keys, token_header: tokenHeader, ...given }: Body["issuers"][number],
  at: string,
): Result<Issuer> {
  if ((url === undefined) === (keys === undefined))
    return invalid(
      url === undefined ? `${at}.jwks_url` : `${at}.keys`,
      "or the other must be given, not both",
    );
  const fault = url === undefined ? undefined : jwksUrlFault(url);
  if (fault !== undefined) return invalid(`${at}.jwks_url`, fault);
  const rules: Issuer["rules"][number][] = [];
  for (const [index, rule] of given.rules.entries()) {
    const place = `${at}.rules[${index}]`;
    const grant = grantOf(rule, place);
    if (!grant.ok) return grant;
    const claims = claimsOf(rule.claims, `${place}.claims`);
    if (!claims.ok) return claims;
    rules.push({ ...grant.value, claims: claims.value });
  }
  const { name, issuer, audience, algorithms } = given;
  const kept = keys?.map((key) => withoutUndefined(key)) ?? null;
  // The verifier ignores keys that it can't use, and would only say that the key of a token is unknown.
  const unusable = kept?.findIndex((key) => readKeys([key]).length === 0) ?? -1;
  if (unusable >= 0) return invalid(`${at}.keys[${unusable}]`, UNUSABLE_KEY);
  return ok({
    name,
    issuer,
    audience,
    algorithms,
    jwksUrl: url ?? null,
    keys: kept,
    ...(tokenHeader === undefined ? {} : { tokenHeader }),
    rules,
  });
}

const UNUSABLE_KEY =
  "must be a public key for signatures: RSA with `n` and `e`, EC on P-256, P-384 or P-521 with `x` and " +
  "`y`, or OKP on Ed25519 with `x`; leave out keys with another `use` than `sig`";

const withoutUndefined = (key: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(key).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );

function claimsOf(
  given: Readonly<Record<string, string | readonly string[]>>,
  at: string,
): Result<Record<string, string[]>> {
  const claims = Object.entries(given);
  // A rule without claims would fit every token of the issuer, which for a public one are those of everybody.
  if (claims.length === 0) return invalid(at, "must have at least 1 claim");
  if (claims.length > MAX_CLAIMS) return invalid(at, `must have at most ${MAX_CLAIMS} claims`);
  return ok(Object.fromEntries(claims.map(([name, values]) => [name, [values].flat()])));
}

function grantOf(
  { role, cell_id: cell }: Pick<Body["issuers"][number]["rules"][number], "role" | "cell_id">,
  at: string,
): Result<Grant> {
  if (role === "cell" && cell === undefined)
    return invalid(`${at}.cell_id`, "is required for the role `cell`");
  if (role !== "cell" && cell !== undefined)
    return invalid(`${at}.cell_id`, "is only allowed for the role `cell`; leave it out");
  return ok({ role, cell: cell ?? null });
}

async function authorityOf(
  { name, certificate, rules: given }: Body["authorities"][number],
  at: string,
  nowMs: number,
): Promise<Result<Authority>> {
  // Imported at its first use, because most isolates never read a certificate.
  const { readAuthority } = await import("../../../auth/certificates/authority.ts");
  const read = await readAuthority(certificate, nowMs);
  if (!read.ok) return invalid(`${at}.certificate`, `is not valid: ${read.refusal.detail}`);
  const rules: Authority["rules"][number][] = [];
  for (const [index, { dns, uri, ...rule }] of given.entries()) {
    const place = `${at}.rules[${index}]`;
    const grant = grantOf(rule, place);
    if (!grant.ok) return grant;
    if (dns !== undefined && uri !== undefined) return invalid(`${place}.uri`, "must not be beside `dns`");
    if (dns !== undefined && !DNS_NAME.test(dns))
      return invalid(`${place}.dns`, "must be a DNS name in full, without `*`");
    if (uri !== undefined && !URL.canParse(uri)) return invalid(`${place}.uri`, "must be a URI in full");
    const named = dns === undefined ? uri : asciiLowerCase(dns);
    if (named === undefined) return invalid(`${place}.dns`, "or `uri` is required");
    rules.push({ ...grant.value, kind: dns === undefined ? "uri" : "dns", name: named });
  }
  return ok({ name, certificate, expiresAtMs: read.value.expiresAtMs, rules });
}

const DNS_NAME = /^[a-z\d_](?:[a-z\d_-]{0,62}\.)*[a-z\d_-]{1,63}$/i;

function toApi({ position, issuers, authorities }: IdentitySet): ApiIdentities {
  return {
    version: position,
    issuers: issuers.map(({ name, issuer, audience, algorithms, jwksUrl, keys, tokenHeader, rules }) => ({
      name,
      issuer,
      audience,
      algorithms: algorithms as ApiIssuer["algorithms"],
      ...(jwksUrl === null ? {} : { jwks_url: jwksUrl }),
      ...(keys === null ? {} : { keys: keys as ApiIssuer["keys"] }),
      ...(tokenHeader === undefined ? {} : { token_header: tokenHeader as ApiIssuer["token_header"] }),
      rules: rules.map(({ claims, ...grant }) => ({
        claims: Object.fromEntries(Object.entries(claims).map(([claim, values]) => [claim, onlyOf(values)])),
        ...toApiGrant(grant),
      })),
    })),
    authorities: authorities.map(({ name, certificate, rules }) => ({
      name,
      certificate,
      rules: rules.map(({ kind, name: named, ...grant }) => ({ [kind]: named, ...toApiGrant(grant) })),
    })),
    authority_expiries: authorities.map(({ name, expiresAtMs }) => ({
      name,
      expires_at: timeOf(expiresAtMs),
    })),
  };
}

const onlyOf = (values: readonly string[]): string | string[] => {
  const [only, ...more] = values;
  return only === undefined || more.length > 0 ? [...values] : only;
};

type ApiGrant = Pick<ApiIdentities["issuers"][number]["rules"][number], "role" | "cell_id">;

const toApiGrant = ({ role, cell }: Grant): ApiGrant => ({
  role: role as ApiGrant["role"],
  ...(cell === null ? {} : { cell_id: cell }),
});

function changesOf(before: Identities, after: Identities): ApiChange[] {
  return (["issuers", "authorities"] as const).flatMap((list) => {
    const [old, wanted] = [before, after].map(
      (each) => new Map(each[list].map((entry) => [entry.name, JSON.stringify(entry)])),
    );
    return [...new Set([...(old?.keys() ?? []), ...(wanted?.keys() ?? [])])].flatMap((name): ApiChange[] => {
      const [was, is] = [old?.get(name), wanted?.get(name)];
      if (was === is) return [];
      const change = was === undefined ? "add" : is === undefined ? "remove" : "change";
      return [{ entry: `${list}.${name}`, change }];
    });
  });
}

export { identityHandlers as handlers, identityRoutes as routes };
