import { tableOf } from "../table.ts";
import type { Page } from "../layout.ts";
import { html } from "../markup.ts";
import { countText } from "../amounts.ts";
import { agoOf, factsOf, failedPage, type View } from "../view.ts";
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
  const [health, ready] = await Promise.all([api.call("getHealth"), api.call("getReadiness")]);
  const run = ready.ok ? ready.value.last_cron_run : null;
  return {
    title: "Health",
    main: html`${factsOf([
      ["Worker", health.ok ? html`<span class="good">answers</span>` : "fails"],
      ["Version", health.ok ? health.value.version : null],
      [
        "Parts",
        ready.ok ? html`<span class="good">all answer</span>` : html`<span class="bad">some fail</span>`,
      ],
      ["D1", ready.ok ? ready.value.d1 : null],
      ["Cron finished", run === null ? "unknown" : agoOf(run.finished_at, nowMs)],
      ["Cells that its last run failed for", run?.cells_failed],
    ])}
    ${ready.ok ? undefined : problemNote(ready.problem)}
    ${
      ready.ok
        ? undefined
        : html`<ul class="panel reasons">
            ${ready.problem.failed?.map((part) => html`<li>${part}</li>`)}
          </ul>`
    }`,
  };
}
