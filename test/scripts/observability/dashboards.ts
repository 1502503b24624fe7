import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "./alert-rules.ts";

interface Panel {
  id: number;
  title: string;
  description: string;
  datasource: { type: string; uid: string };
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig: { defaults: { unit: string } };
  targets: { refId: string; expr: string }[];
}

interface Dashboard {
  uid: string;
  title: string;
  templating: { list: { name: string; type: string; query: string }[] };
  panels: Panel[];
}

const dashboards = join(folder, "dashboards");

export const readDashboards = (): (Dashboard & { file: string })[] =>
  readdirSync(dashboards).map((file) => ({
    file,
    ...(JSON.parse(readFileSync(join(dashboards, file), "utf8")) as Dashboard),
  }));

/** The queries of a dashboard, with the values that Grafana would put in. */
export const queriesOf = ({ panels }: Dashboard): string[] =>
  panels.flatMap(({ targets }) =>
    targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m").replaceAll("$cell", "1")),
  );
