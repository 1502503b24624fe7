/** Authorities and certificates for tests, made by openssl. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Issued {
  cert: Buffer;
  key: Buffer;
  certFile: string;
  keyFile: string;
}

const keyOptions = {
  "P-256": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
  "P-384": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"],
  "P-521": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"],
  secp256k1: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
  Ed25519: ["-newkey", "ed25519"],
  RSA: ["-newkey", "rsa:2048"],
  "RSA-1024": ["-newkey", "rsa:1024"],
} as const;

export type KeyKind = keyof typeof keyOptions;

interface Options {
  key?: KeyKind;
  /** Negative: it has expired. */
  days?: number;
  /** Lines of openssl's extensions, such as `keyUsage=critical,digitalSignature`. */
  extensions?: readonly string[];
}

interface IssueOptions extends Options {
  /** Such as `DNS:cell-1.test`. */
  sans: readonly string[];
  /** Such as `sha384`, which is not for keys on Edwards curves. */
  digest?: string;
}

/** An authority in a folder of its own. */
export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), "authority-"));
  readonly certFile = join(this.folder, "ca.pem");
  readonly keyFile = join(this.folder, "ca.key");
  readonly #subject: string;
  #issued = 0;

  constructor(name = "test authority", { key = "P-256", days = 30, extensions = [] }: Options = {}) {
    this.#subject = `/CN=${name}`;
    const subject = ["-subj", this.#subject, "-days", String(days)];
    const more = extensions.flatMap((line) => ["-addext", line]);
    openssl(
      "req",
      "-x509",
      ...newKey(key),
      ...subject,
      ...more,
      "-keyout",
      this.keyFile,
      "-out",
      this.certFile,
    );
  }

  get cert(): Buffer {
    return readFileSync(this.certFile);
  }

  issue(name: string, { sans, days = 30, key = "P-256", extensions = [], digest }: IssueOptions): Issued {
    this.#issued += 1;
    const at = (ending: string): string => join(this.folder, `${this.#issued}.${ending}`);
    const [keyFile, certFile] = [at("key"), at("pem")];
    const names = sans.length === 0 ? [] : [`subjectAltName=${sans.join(",")}`];
    writeFileSync(at("ext"), `${[...names, ...extensions].join("\n")}\n`);
    openssl("req", ...newKey(key), "-subj", `/CN=${name}`, "-keyout", keyFile, "-out", at("csr"));
    const signer = ["-CA", this.certFile, "-CAkey", this.keyFile, "-set_serial", String(this.#issued)];
    const valid = [
      "-days",
      String(days),
      "-extfile",
      at("ext"),
      ...(digest === undefined ? [] : [`-${digest}`]),
    ];
    openssl("x509", "-req", "-in", at("csr"), ...signer, ...valid, "-out", certFile);
    return { cert: readFileSync(certFile), key: readFileSync(keyFile), certFile, keyFile };
  }

  /** Makes another certificate of the authority for the same key. */
  renewed(days: number, subject = this.#subject): Buffer {
    const named = ["-subj", subject, "-days", String(days)];
    return Buffer.from(openssl("req", "-x509", "-key", this.keyFile, ...named));
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The certificate of a PEM in DER. */
export const derOf = (pem: Buffer): Buffer =>
  Buffer.from(/-----BEGIN CERTIFICATE-----([^-]+)/.exec(pem.toString())?.[1] ?? "", "base64");

const newKey = (kind: KeyKind): readonly string[] => [...keyOptions[kind], "-nodes"];

function openssl(...options: string[]): string {
  const { status, stderr, stdout } = spawnSync("openssl", options, { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl ${options[0]}: ${stderr}`);
  return stdout;
}
