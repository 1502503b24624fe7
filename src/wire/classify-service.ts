import { ClassifyAction, ClassifyType, type ClassifyService } from "./protobuf.ts";
import { getCells } from "./cells.ts";
import { nameOfClaim } from "./names.ts";
import { typesOf } from "./type-numbers.ts";
import { callOf, type WireService } from "./wire-call.ts";

export const classifyService: WireService<typeof ClassifyService> = {
  getCells,

  async classify({ type, value, claim, claims }, context) {
    const call = await callOf(context, "classify");
    const sent = claims.length > 0 ? claims : claim === undefined ? [] : [claim];
    const { lookupBuckets } = call.deployment.config.limits;
    if (sent.length > lookupBuckets)
      call.fail("INVALID_ARGUMENT", `\`claims\` has more than ${lookupBuckets} items; send fewer`);
    const given = sent.map((each, index) =>
      call.value(nameOfClaim(each, claims.length > 0 ? `claims[${index}]` : "claim")),
    );
    const numbers = given.map(({ number, field }) => ({ kind: "bucket" as const, number, field }));
    const { nameOf } = call.value(await typesOf(call.deployment, numbers));
    const asked = given.map((each) => ({ type: nameOf("bucket", each.number), value: each.value }));
    const answer = await call.send("classify", {
      body: {
        type: ClassifyType[type] ?? String(type),
        ...(value === "" ? {} : { value }),
        ...(asked.length === 0 ? {} : { claims: asked }),
      },
    });
    const matched = answer.matched_claim;
    const index = asked.findIndex((each) => each.type === matched?.type && each.value === matched.value);
    return {
      action: ClassifyAction.PROXY,
      proxy: { address: answer.proxy.address },
      ...(sent[index] === undefined ? {} : { matchedClaim: sent[index] }),
    };
  },
};
