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

interface IssueOptions {
  /** Such as `DNS:cell-1.test`. */
  sans: readonly string[];
  /** Negative: it has expired. */
  days?: number;
}

/** An authority in a folder of its own. */
export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), "authority-"));
  readonly certFile = join(this.folder, "ca.pem");
  readonly #keyFile = join(this.folder, "ca.key");
  #issued = 0;

  constructor(name = "test authority") {
    const subject = ["-subj", `/CN=${name}`, "-days", "30"];
    openssl("req", "-x509", ...NEW_KEY, ...subject, "-keyout", this.#keyFile, "-out", this.certFile);
  }

  get cert(): Buffer {
    return readFileSync(this.certFile);
  }

  issue(name: string, { sans, days = 30 }: IssueOptions): Issued {
    this.#issued += 1;
    const at = (ending: string): string => join(this.folder, `${this.#issued}.${ending}`);
    const [keyFile, certFile] = [at("key"), at("pem")];
    writeFileSync(at("ext"), `subjectAltName=${sans.join(",")}\n`);
    openssl("req", ...NEW_KEY, "-subj", `/CN=${name}`, "-keyout", keyFile, "-out", at("csr"));
    const signer = ["-CA", this.certFile, "-CAkey", this.#keyFile, "-set_serial", String(this.#issued)];
    const valid = ["-days", String(days), "-extfile", at("ext")];
    openssl("x509", "-req", "-in", at("csr"), ...signer, ...valid, "-out", certFile);
    return { cert: readFileSync(certFile), key: readFileSync(keyFile), certFile, keyFile };
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function openssl(...options: string[]): void {
  const { status, stderr } = spawnSync("openssl", options, { encoding: "utf8" });
  if (status !== 0) throw new Error(`openssl ${options[0]}: ${stderr}`);
}
