import type { CertificateVerifier } from "../../../auth/certificates/certificate-verifier.ts";
import type { TokenVerifier } from "../../../auth/tokens/token-verifier.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { Log } from "../../../kernel/ports.ts";
import type { WallClock } from "../../../runtime.ts";

/** The verifiers of certificates and tokens. Each is loaded at its first use, because few deployments do. */
export class IdentityVerifiers {
  readonly #limits: Limits;
  readonly #clock: WallClock;
  readonly #log: Log;
  #tokens: TokenVerifier | undefined;
  #certificates: CertificateVerifier | undefined;

  constructor(limits: Limits, clock: WallClock, log: Log) {
    this.#limits = limits;
    this.#clock = clock;
    this.#log = log;
  }

  async tokens(): Promise<TokenVerifier> {
    const { TokenVerifier } = await import("../../../auth/tokens/token-verifier.ts");
    return (this.#tokens ??= new TokenVerifier(this.#limits, this.#clock, this.#log));
  }

  async certificates(): Promise<CertificateVerifier> {
    const { CertificateVerifier } = await import("../../../auth/certificates/certificate-verifier.ts");
    return (this.#certificates ??= new CertificateVerifier(this.#limits));
  }
}
