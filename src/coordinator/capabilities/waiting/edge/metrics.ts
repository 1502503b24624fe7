import { byClock, counter, familiesOf, gauge, histogram, since } from "../../metrics/edge/family.ts";

export const families = [
  familiesOf("ledger", "leasehold_commits", {
    leasehold_begins_waiting: gauge(
      "Begins among them that wait for a leased name.",
      (of) => of.waitingBegins,
    ),
    leasehold_begin_waits: counter(
      `Waits of begins for leased names, by how they ended: offered, ended or refused, ${since}.`,
      ({ waits }) => waits.map(({ result, count }) => [{ result }, count]),
      "result",
    ),
  }),
  familiesOf("ledger", "leasehold_decision_duration_seconds", {
    leasehold_begin_wait_duration_seconds: histogram(
      `How long begins waited for a leased name, ${byClock}`,
      (of) => of.waitDurations,
    ),
  }),
  familiesOf("shard", "leasehold_inquiries", {
    leasehold_waits: counter(
      `Messages from ledgers whose begins wait for a name, ${since}.`,
      (of) => of.waits,
    ),
    leasehold_waits_refused: counter(
      `The messages among them that found no room in a queue, ${since}.`,
      (of) => of.refusedWaits,
    ),
    leasehold_offers_missed: counter(
      `Offers of names that a begin did not take within the limit offer_ms, ${since}.`,
      (of) => of.missedOffers,
    ),
    leasehold_queue_length: gauge("Begins that wait for names of the shard.", (of) => of.waitingBegins),
  }),
];
