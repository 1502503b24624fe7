import { AccessVerifier } from "../auth/access-verifier.ts";
import { ConsoleSessions } from "../auth/console-sessions.ts";
import { secretsOf, type Secrets } from "../auth/secrets.ts";
import { KeyVerifier } from "../auth/verifier.ts";
import type { Envelope } from "../kernel/messages.ts";
import { ok, type Result } from "../kernel/refusal.ts";
import { shardsOf } from "../kernel/placement.ts";
import type { Config } from "../config.ts";
import { configOf, type Env } from "../env.ts";
import { logEvent } from "../log.ts";
import { type Answer, type Call, CallTracing } from "../objects/interceptor.ts";
import { KnownFormat, KnownPlacement } from "./known-placement.ts";
import { objectsOf, type Objects } from "../objects/objects.ts";
import { Witness } from "../capabilities/loss/edge/witness.ts";
import { defaultRuntime, type Runtime, type WallClock } from "../runtime.ts";
import type { Work } from "../tracing/tracer.ts";
import { Database } from "../d1/database.ts";
import { DirectoryCopies } from "../d1/directory-copies.ts";
import { mirrorTypes } from "../capabilities/projection/edge/mirror.ts";
import { DirectoryCopy } from "./directory-copy.ts";
import { FairShares } from "../api/fair-shares.ts";
import { Misconfigured } from "../api/problem.ts";
import { IdentityVerifiers } from "../capabilities/identities/edge/verifiers.ts";
import { Scrape } from "../capabilities/metrics/edge/scrape.ts";
import { OpenStreams } from "../capabilities/feed/edge/open-streams.ts";
import { PageTokens } from "../api/page-token.ts";
import { Readiness } from "./readiness.ts";
import { RequestTracing } from "../api/trace.ts";
import { TypesCopy } from "../capabilities/types/edge/types-copy.ts";
import { UseRecorder } from "../capabilities/keys/edge/use-recorder.ts";

/** Everything that is made from the secrets. It is replaced when they change. */
interface Signed {
  secrets: Secrets;
  keys: KeyVerifier;
  tokens: PageTokens;
  sessions: ConsoleSessions;
}

type DeploymentRuntime = Pick<Runtime, "clock" | "log">;

/** The state that an isolate keeps between the requests of one environment. */
export class Deployment {
  readonly env: Env;
  readonly clock: WallClock;
  readonly log: typeof logEvent;
  readonly config: Config;
  /** What the isolate knows. A request computes with one placement from beginning to end (`placed`). */
  readonly placement: KnownPlacement;
  readonly format = new KnownFormat();
  readonly objects: Objects;
  /** Undefined if nothing is traced. */
  readonly tracing: RequestTracing | undefined;
  readonly directory: DirectoryCopy;
  readonly types: TypesCopy;
  /** Recognize callers without a key. */
  readonly verifiers: IdentityVerifiers;
  readonly uses: UseRecorder;
  /** The streams of changes that are open. */
  readonly streams: OpenStreams;
  readonly fairShares: FairShares;
  readonly readiness: Readiness;
  readonly scrape: Scrape;
  /** Undefined if the console does not accept users of Cloudflare Access. */
  readonly access: AccessVerifier | undefined;
  #signed: Signed | undefined;

  constructor(env: Env, { clock, log }: DeploymentRuntime = defaultRuntime) {
    this.env = env;
    this.clock = clock;
    this.log = log;
    this.config = readConfig(env);
    const { tracing, limits, access } = this.config;
    this.access = access && new AccessVerifier(access, clock, log);
    this.tracing = tracing && new RequestTracing(tracing, limits, clock, log);
    this.placement = new KnownPlacement(this.config.initialShards);
    this.objects = objectsOf(env, this.config, [
      ...(this.tracing === undefined ? [] : [new CallTracing(this.tracing.tracer, "client")]),
      this.format,
      this.placement,
      { after: (call, answer) => this.#learnLoss(call, answer) },
      new Witness(),
    ]);
    this.types = new TypesCopy(this.objects, this.config.limits, () => this.envelope, {
      // A `Database` is for one request: it has a limited number of statements, and gives up after a stall.
      types: () => new DirectoryCopies(env).types(),
      save: (set) => mirrorTypes(new Database(env), set),
    });
    this.directory = new DirectoryCopy(this, clock, this.types);
    this.verifiers = new IdentityVerifiers(this.config.limits, clock, log);
    this.uses = new UseRecorder(env, this.config.limits, { clock, log });
    this.streams = new OpenStreams(() => clock.now());
    this.fairShares = new FairShares(clock);
    this.readiness = new Readiness(this);
    this.scrape = new Scrape(this);
  }

  /** The copy of a directory that has gone back in time must not be used. */
  #learnLoss({ kind }: Call, answer: Answer | undefined): void {
    if (kind !== "directory" || answer === undefined || answer.ok) return;
    if (answer.refusal.reason === "HISTORY_LOST") this.directory.lose(answer.refusal);
  }

  /** The fields that all messages have. */
  get envelope(): Envelope {
    return { placement: this.placement.current };
  }

  /** The number of shards of the placement in `envelope`. */
  get shards(): number {
    return shardsOf(this.envelope.placement);
  }

  /**
   * Runs work with one placement, the newest that the isolate knows. If the work ends refused because the
   * deployment has another one, it runs again with that. An object that refuses a placement carries out
   * nothing, so the work has changed nothing, or can be repeated like a call without an answer.
   */
  async placed<T>(work: (deployment: Deployment) => Promise<Result<T>>): Promise<Result<T>> {
    for (let runs = 1; ; runs += 1) {
      const placement = this.placement.current;
      const envelope = { ...this.envelope, placement };
      const deployment = Object.create(this, { envelope: { value: envelope } }) as Deployment;
      const result = await work(deployment);
      const isOutdated =
        !result.ok && result.refusal.reason === "PLACEMENT_MISMATCH" && this.placement.current !== placement;
      if (!isOutdated || runs === MAX_RUNS) return result;
    }
  }

  /**
   * Returns this deployment for one traced request: its messages name the request's span. The copies and the
   * answers that requests share belong to no request, so their messages name none.
   */
  tracedBy({ traces }: Work): Deployment {
    return Object.create(this, { envelope: { value: { ...this.envelope, traces } } }) as Deployment;
  }

  /** Refused if the signing secret is missing or too short. */
  readonly signed = (): Result<Signed> => {
    const read = secretsOf(this.env);
    if (!read.ok) return read;
    const secrets = read.value;
    if (
      this.#signed?.secrets.current !== secrets.current ||
      this.#signed.secrets.previous !== secrets.previous
    ) {
      this.#signed = {
        secrets,
        keys: new KeyVerifier(secrets, this.config.limits),
        tokens: new PageTokens(secrets),
        sessions: new ConsoleSessions(secrets),
      };
    }
    return ok(this.#signed);
  };
}

/** One growth needs two runs. A third one serves an isolate that starts with a wrong guess meanwhile. */
const MAX_RUNS = 3;

function readConfig(env: Env): Config {
  try {
    return configOf(env);
  } catch (error) {
    throw new Misconfigured(error instanceof Error ? error.message : "a variable of the deployment is wrong");
  }
}

const deployments = new WeakMap<Env, Deployment>();

/** The deployment of an environment, made at its first use. Throws `Misconfigured` if a variable is wrong. */
export function deploymentOf(env: Env): Deployment {
  const known = deployments.get(env);
  if (known !== undefined) return known;
  const deployment = new Deployment(env);
  deployments.set(env, deployment);
  return deployment;
}

/**
 * Makes the deployment of an environment with its own clock and log, before its first request. Throws like
 * `deploymentOf`.
 */
export function deploy(env: Env, runtime: DeploymentRuntime): void {
  deployments.set(env, new Deployment(env, runtime));
}

/** The log for requests, also if the deployment could not be made. */
export const logOf = (env: Env): typeof logEvent => deployments.get(env)?.log ?? logEvent;
