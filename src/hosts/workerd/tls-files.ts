/** Reads the files of options for TLS. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";

/** Throws an `Error` that names the option if TLS could not use the files of `--cert` and `--key`. */
export async function readTls(certPath: string, keyPath: string): Promise<{ cert: Buffer; key: Buffer }> {
  const cert = await readOption("--cert", certPath);
  const key = await readOption("--key", keyPath);
  const certificate = parsed(() => new X509Certificate(cert));
  if (certificate === undefined) throw new Error(`--cert names ${certPath}, which has no certificate in PEM`);
  const privateKey = parsed(() => createPrivateKey(key));
  if (privateKey === undefined)
    throw new Error(`--key names ${keyPath}, which has no private key in PEM without a passphrase`);
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`--key names ${keyPath}, which is not the key of the first certificate in ${certPath}`);
  return { cert, key };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Throws an `Error` that names the option unless all certificates of the file can be read. An authority that
 * another one has signed needs that one in the file, too: without it, TLS would accept no client.
 */
export async function readAuthorities(option: string, path: string): Promise<Buffer> {
  const file = await readOption(option, path);
  const blocks = file.toString("latin1").match(CERTIFICATE) ?? [];
  if (blocks.length === 0) throw new Error(`${option} names ${path}, which has no certificate in PEM`);
  const authorities = blocks.map((block) => parsed(() => new X509Certificate(block)));
  for (const authority of authorities) {
    if (authority === undefined)
      throw new Error(`${option} names ${path}, which has a certificate that cannot be read`);
    const { subject, issuer } = authority;
    const isWhole = subject === issuer || authorities.some((other) => other && authority.checkIssued(other));
    if (!isWhole)
      throw new Error(
        `${option} names ${path}, which has ${inOneLine(subject)} without the authority that signed it ` +
          `(${inOneLine(issuer)}); add its certificate`,
      );
  }
  return file;
}

const inOneLine = (name: string): string => name.replaceAll("\n", ", ");

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

async function readOption(option: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`${option} names ${path}, which cannot be read (${code})`, { cause: error });
  }
}
