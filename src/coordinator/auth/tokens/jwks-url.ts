const MAX_URL_LENGTH = 2_048;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Says what is wrong with the URL of an issuer's keys, in words that follow the name of the field. Undefined:
 * nothing.
 */
export function jwksUrlFault(text: string): string | undefined {
  const url = text.length > MAX_URL_LENGTH ? null : URL.parse(text);
  if (url === null) return "must be a URL of at most 2,048 characters";
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (!isSafe) return "must be an https URL; http is only allowed to a loopback address";
  if (url.username !== "" || url.password !== "") return "must have no user and no password";
  return url.hash === "" ? undefined : "must have no fragment";
}
