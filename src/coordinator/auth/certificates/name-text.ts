import type { Name } from "@peculiar/asn1-x509";

/** The short names of RFC 4514 and of openssl. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  "2.5.4.3": "CN",
  "2.5.4.5": "serialNumber",
  "2.5.4.6": "C",
  "2.5.4.7": "L",
  "2.5.4.8": "ST",
  "2.5.4.10": "O",
  "2.5.4.11": "OU",
  "0.9.2342.19200300.100.1.25": "DC",
  "1.2.840.113549.1.9.1": "emailAddress",
};

/** Writes a subject for people, such as `CN=cells, O=Example`. Only DER is compared. */
export const nameText = (name: Name): string =>
  [...name]
    .toReversed()
    .flatMap((attributes) => [...attributes])
    .map(({ type, value }) => `${ATTRIBUTES[type] ?? type}=${escaped(value.toString())}`)
    .join(", ");

const escaped = (text: string): string => text.replaceAll(/[\\,+"<>;]/g, (found) => `\\${found}`);
