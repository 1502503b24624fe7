/**
 * RFC 5321 has these only in quoted local parts and address literals, RFC 5322 also in comments and lists.
 * Some programs decode words of RFC 2047, `=?utf-8?q?ada?=`, in addresses, too.
 */
const SPECIAL = /[ "(),:;<>@[\\\]]|=\?.*\?=/s;

const BEYOND_ASCII = /[^\0-\u007f]/u;

/**
 * Says why a domain is not the only spelling of its name in DNS. Undefined if it is.
 *
 * It must be in ASCII, which DNS compares. IDNA maps other letters by tables that differ between versions of
 * Unicode, so a name could get a second owner when a runtime is updated. Case folding alone would make
 * `straße.de` and `strasse.de` one domain, and they are two.
 *
 * @param domain in NFKC, which makes wide letters, dots and signs those of ASCII, as IDNA does
 */
export function domainFault(domain: string): string | undefined {
  const beyond = BEYOND_ASCII.exec(domain);
  if (beyond)
    return (
      `${codePoint(beyond)} is in the domain: ` +
      "write the domain in ASCII, with xn-- before each part that IDNA encodes."
    );
  return domain.endsWith(".") ? "The domain ends with a dot: leave it out." : undefined;
}

/**
 * Says why an email address is not the only spelling of its mailbox. Undefined if it is, or if the value has
 * no `@` and so is no address.
 *
 * @param address in NFKC
 */
export function emailFault(address: string): string | undefined {
  const at = address.lastIndexOf("@");
  if (at < 0) return undefined;
  const domain = address.slice(at + 1);
  const special = SPECIAL.exec(address.slice(0, at) + domain);
  if (special)
    return (
      `${codePoint(special)} in an email address allows several spellings of it: ` +
      "write it as local@domain, without quotes, comments, spaces and encoded words."
    );
  return domainFault(domain);
}

const codePoint = ([found]: RegExpExecArray): string =>
  `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
