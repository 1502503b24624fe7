/** What at most one capability provides. Without one, it is what the kernel does by itself. */
export class Slot<T> {
  #current: T;
  #isProvided = false;

  constructor(byItself: T) {
    this.#current = byItself;
  }

  get current(): T {
    return this.#current;
  }

  provide(value: T): void {
    if (this.#isProvided) throw new TypeError("two capabilities provide the same slot");
    this.#isProvided = true;
    this.#current = value;
  }
}
