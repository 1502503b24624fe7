import * as z from "zod";
import { OPEN_METRICS, PROMETHEUS_TEXT } from "./exposition.ts";
import { nothing } from "../../../api/contract/fields.ts";
import { route } from "../../../api/contract/route.ts";

const example = `# HELP leasehold_up 1 if the part answered this scrape, otherwise 0.
# TYPE leasehold_up gauge
leasehold_up{part="directory"} 1
leasehold_up{part="shard-0"} 1
leasehold_up{part="ledger-7"} 1
`;

export const metricsRoutes = {
  getMetrics: route({
    group: "service",
    method: "GET",
    path: "/metrics",
    summary: "Read metrics",
    about:
      "What the parts of the deployment have counted, for Prometheus and others: in the text format of " +
      "Prometheus, or in that of OpenMetrics for whoever asks for it in `Accept`. A part that does not " +
      "answer is a sample of `leasehold_up` with the value 0. Scrapes within 15 seconds may get the same " +
      "answer. Keys of the role `scraper` may call this route and no other.",
    roles: ["operator", "viewer", "scraper"],
    params: nothing,
    query: nothing,
    responses: {
      200: {
        about: "The samples.",
        schema: z.string(),
        mediaType: PROMETHEUS_TEXT,
        alternatives: { [OPEN_METRICS]: `${example}# EOF\n` },
        example,
      },
    },
    errors: [],
    example: {},
  }),
};
