/**
 * A growth with many kills. With other kills, by hand:
 *
 *     TEST_SLICE=all GROWTH_SEED=7 npx vitest run --silent=false test/hosts/standalone/growth.deep.test.ts
 */
import { growthTest } from "./grown-under-kills.ts";

growthTest(8);
