import { tableOf } from "../table.ts";
import type { Page } from "../layout.ts";
import { html, type Markup, countText } from "../markup.ts";
import { samplesIn, type Samples, factsOf, failedPage, whenOf, type View } from "../view.ts";
import { problemNote } from "../layout.ts";

export async function settingsPage({ api }: View): Promise<Page> {
  const [limits, types] = await Promise.all([api.call("listLimits"), api.call("getTypes")]);
  if (!limits.ok) return failedPage("Settings and limits", limits.problem);
  return {
    title: "Settings and limits",
    main: html`${tableOf("Limits", limits.value.limits, [
      { title: "Limit", value: ({ name }) => name },
      {
        title: "Value",
        value: ({ value, default: usual }) =>
          value === usual ? value : html`<strong>${countText(value)}</strong>`,
        isNumber: true,
      },
      { title: "Default", value: ({ default: usual }) => usual, isNumber: true },
      { title: "Variable", value: ({ variable }) => html`<code>${variable}</code>` },
    ])}
    ${
      types.ok
        ? tableOf("Declared types of names", Object.entries(types.value.types.bucket_types), [
            { title: "Type", value: ([name]) => name },
            {
              title: "Number",
              value: ([, declared]) => (declared as { number: number }).number,
              isNumber: true,
            },
            {
              title: "In use",
              value: ([name]) => (types.value.in_use.bucket_types.includes(name) ? "yes" : "no"),
            },
          ])
        : problemNote(types.problem)
    }`,
  };
}

export async function healthPage({ api, nowMs }: View): Promise<Page> {
  const [health, ready, metrics] = await Promise.all([
    api.call("getHealth"),
    api.call("getReadiness"),
    api.call("getMetrics"),
  ]);
  const run = ready.ok ? ready.value.last_cron_run : null;
  const parts = metrics.ok ? partsIn(samplesIn(metrics.value)) : [];
  const failed = parts.filter(({ isUp }) => !isUp);
  return {
    title: "Health",
    main: html`<p class="panel banner ${ready.ok ? "good" : "bad"}" role="status">${readyText(ready)}</p>
      ${ready.ok ? undefined : problemNote(ready.problem)}
      ${
        failed.length === 0
          ? undefined
          : tableOf("Parts that don't answer", failed, [
              { title: "Part", value: ({ part }) => html`<span class="bad">${part}</span>` },
              {
                title: "Next",
                value: ({ part }) => html`<code>leasehold api GET /v1/admin/parts/${part}</code>`,
              },
            ])
      }
      ${factsOf([
        ["Version", health.ok ? health.value.version : null],
        ["Placement", health.ok ? health.value.placement : null],
        [
          "Parts that answer",
          parts.length === 0 ? null : `${parts.length - failed.length} of ${parts.length}`,
        ],
        ["D1", ready.ok ? stateText(ready.value.d1) : null],
        ["Cron finished", run === null ? "never" : whenOf(run.finished_at, nowMs)],
        ["Cells that its last run failed for", run?.cells_failed],
      ])}
      <p class="soft">
        Run <code>leasehold doctor</code> for a check from outside, with what to do about each finding.
      </p>`,
  };
}

function readyText(ready: { ok: true; value: { failed: readonly string[] } } | { ok: false }): string {
  if (!ready.ok) return "Not ready: some part fails.";
  const { failed } = ready.value;
  return failed.length === 0 ? "Ready: all parts answer." : `Ready, but these fail: ${failed.join(", ")}.`;
}

const stateText = (d1: string): Markup => html`<span class="${d1 === "up" ? "good" : "bad"}">${d1}</span>`;

const partsIn = (samples: Samples): { part: string; isUp: boolean }[] =>
  [...samples].flatMap(([name, value]) => {
    const [, part] = /^leasehold_up\{part="([\w-]+)"\}$/.exec(name) ?? [];
    return part === undefined ? [] : [{ part, isUp: value === 1 }];
  });
