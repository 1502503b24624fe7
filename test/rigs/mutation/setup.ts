import { beforeEach } from "vitest";

/** These try every code point that there is: seconds each, for every mutant of the canonical form, and others find the same ones. */
const EXHAUSTIVE = /of one code point/;

beforeEach(({ task, skip }) => skip(EXHAUSTIVE.test(task.name), "takes too long for every mutant"));
