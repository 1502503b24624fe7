import * as z from "zod";
import { positionsForm, readPositions, type Positions } from "../../../users/router/positions.ts";

const EXAMPLES = ["3:4711,5:88"];

/** Positions of shards in a request, as pairs such as `3:4711,5:88`. */
export const positionsOf = (description: string) =>
  z
    .string()
    .transform((text, context): Positions => {
      const positions = readPositions(text);
      if (typeof positions !== "string") return positions;
      context.addIssue({ code: "custom", message: positions });
      return z.NEVER;
    })
    .meta({ ...positionsForm, description, examples: EXAMPLES });

/** Positions of shards in an answer. */
export const positionsText = (description: string) =>
  z.string().meta({ ...positionsForm, description, examples: EXAMPLES });
