import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { folder } from "./alert-rules.ts";

interface Sample {
  metric: Readonly<Record<string, string>>;
  value: [atS: number, value: string];
}

interface Target {
  health: "up" | "down" | "unknown";
  lastError: string;
}

interface Rule {
  name: string;
  health: "ok" | "err" | "unknown";
  lastError?: string;
}

/** A Prometheus that scrapes one coordinator every 5 seconds, with the rules of the repository. */
export class Prometheus {
  readonly #url: string;
  readonly #folder: string;
  readonly #stop: () => Promise<void>;

  private constructor(url: string, own: string, stop: () => Promise<void>) {
    this.#url = url;
    this.#folder = own;
    this.#stop = stop;
  }

  /** @param host the host and port of the coordinator */
  static async start(host: string, key: string): Promise<Prometheus> {
    const own = mkdtempSync(join(tmpdir(), "prometheus-"));
    copyFileSync(join(folder, "alerts.yml"), join(own, "alerts.yml"));
    writeFileSync(join(own, "key"), key);
    writeFileSync(join(own, "prometheus.yml"), configuration(host));
    const port = await freePort();
    const child = spawn(
      "prometheus",
      [
        `--config.file=${join(own, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(own, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=warn",
      ],
      { stdio: "ignore" },
    );
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    return new Prometheus(`http://127.0.0.1:${port}`, own, async () => {
      child.kill("SIGTERM");
      await ended;
    });
  }

  /** Returns what the path of the API has in `data`. Undefined until Prometheus answers. */
  async #get<T>(path: string): Promise<T | undefined> {
    try {
      const response = await fetch(`${this.#url}/api/v1/${path}`);
      return ((await response.json()) as { data: T }).data;
    } catch {
      return undefined;
    }
  }

  async targets(): Promise<Target[]> {
    const data = await this.#get<{ activeTargets: Target[] }>("targets");
    return (data?.activeTargets ?? []).map(({ health, lastError }) => ({ health, lastError }));
  }

  async rules(): Promise<Rule[]> {
    const data = await this.#get<{ groups: { rules: Rule[] }[] }>("rules");
    return data?.groups.flatMap(({ rules }) => rules) ?? [];
  }

  /** The newest values of an expression, with their labels apart from those of the target. */
  async query(expression: string): Promise<{ labels: Record<string, string>; value: number }[]> {
    const data = await this.#get<{ result: Sample[] }>(`query?query=${encodeURIComponent(expression)}`);
    return (data?.result ?? []).map(({ metric, value }) => {
      const { __name__: _, job: __, instance: ___, ...labels } = metric;
      return { labels, value: Number(value[1]) };
    });
  }

  /** Why Prometheus refuses an expression. Undefined if it is valid. */
  async errorOf(expression: string): Promise<string | undefined> {
    const response = await fetch(`${this.#url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    return ((await response.json()) as { error?: string }).error;
  }

  /** What Prometheus has read about a family. */
  async typeOf(family: string): Promise<string | undefined> {
    const data = await this.#get<Record<string, { type: string }[]>>(`metadata?metric=${family}`);
    return data?.[family]?.[0]?.type;
  }

  async stop(): Promise<void> {
    await this.#stop();
    rmSync(this.#folder, { recursive: true });
  }
}

const configuration = (host: string): string => `
global:
  scrape_interval: 5s
  scrape_timeout: 5s
  evaluation_interval: 1s
rule_files:
  - alerts.yml
scrape_configs:
  - job_name: leasehold
    authorization:
      credentials_file: key
    static_configs:
      - targets: ["${host}"]
`;
