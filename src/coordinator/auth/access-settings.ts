import { asciiLowerCase } from "./ascii-lower-case.ts";

/** How the console accepts the users of Cloudflare Access. */
export interface AccessSettings {
  /** The issuer of the assertions, such as `https://acme.cloudflareaccess.com`. */
  issuer: string;
  /** The audience tag of the Access application. */
  audience: string;
  operators: readonly string[];
  viewers: readonly string[];
}

const TEAM_DOMAIN = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.cloudflareaccess\.com$/;
const AUDIENCE = /^[\da-f]{64}$/;
/** An address, or `*@` and a domain for all of its addresses. */
const EMAIL = /^(?:\*|[^\s@,*]+)@[a-z\d.-]+\.[a-z]{2,}$/;

/** Reads the variables. Undefined: Access is not used. Throws an Error that names the wrong variable. */
export function readAccess(variables: Readonly<Record<string, unknown>>): AccessSettings | undefined {
  const of = (name: string): string => {
    const given = variables[name];
    return typeof given === "string" ? given.trim() : "";
  };
  const team = asciiLowerCase(of("LEASEHOLD_ACCESS_TEAM_DOMAIN"));
  const audience = of("LEASEHOLD_ACCESS_AUDIENCE");
  const operators = emailsOf("LEASEHOLD_ACCESS_OPERATORS", of("LEASEHOLD_ACCESS_OPERATORS"));
  const viewers = emailsOf("LEASEHOLD_ACCESS_VIEWERS", of("LEASEHOLD_ACCESS_VIEWERS"));
  if (team === "" && audience === "" && operators.length === 0 && viewers.length === 0) return undefined;
  if (!TEAM_DOMAIN.test(team))
    throw new Error("LEASEHOLD_ACCESS_TEAM_DOMAIN must be a domain such as acme.cloudflareaccess.com");
  if (!AUDIENCE.test(audience))
    throw new Error(
      "LEASEHOLD_ACCESS_AUDIENCE must be the audience (AUD) tag of the Access application: 64 hexadecimal " +
        "digits",
    );
  if (operators.length + viewers.length === 0)
    throw new Error(
      "LEASEHOLD_ACCESS_OPERATORS or LEASEHOLD_ACCESS_VIEWERS must name somebody, such as *@example.com",
    );
  return { issuer: `https://${team}`, audience, operators, viewers };
}

function emailsOf(name: string, given: string): string[] {
  const emails = asciiLowerCase(given)
    .split(",")
    .map((email) => email.trim())
    .filter((email) => email !== "");
  if (!emails.every((email) => EMAIL.test(email)))
    throw new Error(
      `${name} must be email addresses separated by commas, such as ada@example.com, or *@example.com for ` +
        "all addresses of a domain",
    );
  return emails;
}
