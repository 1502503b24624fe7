/** A growth with two kills: before the cut, and around it. The nightly suite kills the server more often. */
import { growthTest } from "./grown-under-kills.ts";

growthTest(2);
