import { createClient, type Client } from "../../users/client/index.ts";
import { send, type RawAnswer, type RawRequest } from "../connection/send.ts";
import { findTarget, type Target, type TargetOptions } from "../connection/target.ts";
import type { Format } from "../output/print.ts";
import type { Io } from "./io.ts";

/** The options that every command has. */
export interface GlobalOptions extends TargetOptions {
  json?: boolean;
  jsonl?: boolean;
}

/** Some calls ask other parts of the deployment, whose own limit is two minutes. */
const DEADLINE_MS = 30_000;

/** What a command works with. */
export class Context {
  readonly io: Io;
  readonly options: GlobalOptions;
  #target: Promise<Target> | undefined;
  #client: Client | undefined;

  constructor(io: Io, options: GlobalOptions) {
    this.io = io;
    this.options = options;
  }

  get format(): Format {
    if (this.options.jsonl === true) return "jsonl";
    return this.options.json === true ? "json" : "text";
  }

  /** The deployment. Reads the file of contexts if it has to. */
  target(): Promise<Target> {
    return (this.#target ??= findTarget(this.io, this.options));
  }

  async client(): Promise<Client> {
    const { url, key } = await this.target();
    const { fetch, signal } = this.io;
    return (this.#client ??= createClient({ url, key, fetch, signal, deadlineMs: DEADLINE_MS }));
  }

  /** Sends one request as it is, for what the client does not tell, such as headers. */
  async send(request: RawRequest): Promise<RawAnswer> {
    return send(this.io, await this.target(), request);
  }
}
