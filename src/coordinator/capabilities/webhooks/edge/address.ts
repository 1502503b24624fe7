import type { WebhookHosts } from "../../../config.ts";

/** Why messages may not go to this address; undefined if they may. The URL is valid. */
export function addressFault(url: string, hosts: WebhookHosts): string | undefined {
  const { protocol, hostname } = new URL(url);
  const kind = kindOf(hostname);
  if (protocol !== "https:" && !(hosts === "any" && kind === "loopback"))
    return "must begin with https://; http is only for loopback, with LEASEHOLD_WEBHOOK_HOSTS=any";
  if (kind !== "public" && hosts !== "any")
    return "must have a public host; private and loopback hosts need LEASEHOLD_WEBHOOK_HOSTS=any";
  return undefined;
}

/** `hostname` is in the normal form of URLs, so an IPv4 address has four decimal numbers. */
function kindOf(hostname: string): "public" | "private" | "loopback" {
  const name = hostname.replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return "loopback";
  if (name.startsWith("[")) return kindOfIpv6(name.slice(1, -1));
  if (/^\d+\.\d+\.\d+\.\d+$/.test(name)) return kindOfIpv4(name.split(".").map(Number));
  const isPrivate = !name.includes(".") || /\.(?:local|internal|home\.arpa|lan)$/.test(name);
  return isPrivate ? "private" : "public";
}

function kindOfIpv4([a = 0, b = 0, c = 0]: readonly number[]): "public" | "private" | "loopback" {
  if (a === 127) return "loopback";
  const isPrivate =
    a === 0 ||
    a === 10 ||
    (a === 100 && b >= 64 && b < 128) ||
    (a === 169 && b === 254) ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && (b === 168 || (b === 0 && (c === 0 || c === 2)))) ||
    (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) ||
    (a === 203 && b === 0 && c === 113) ||
    a >= 224;
  return isPrivate ? "private" : "public";
}

/**
 * Of IPv6, only global unicast addresses (2000::/3) are public, without those that contain an IPv4
 * address.
 */
function kindOfIpv6(address: string): "public" | "private" | "loopback" {
  if (address === "::1") return "loopback";
  const isGlobal = /^[23][\da-f]{3}:/.test(address) && !/^(?:2001:(?:0|db8)?:|2002:|3fff:)/.test(address);
  return isGlobal ? "public" : "private";
}
