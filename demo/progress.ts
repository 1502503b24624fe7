interface Output {
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  write(text: string): unknown;
}

const TTY_EVERY_MS = 100;
const PLAIN_EVERY_MS = 2_000;

/**
 * Shows what the demo is doing: on a terminal one line that is rewritten, elsewhere a new line every 2
 * seconds.
 */
export class Progress {
  readonly #output: Output;
  readonly #started = performance.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #describe: () => string = () => "";

  constructor(output: Output) {
    this.#output = output;
    this.#timer = setInterval(() => this.#show(), output.isTTY === true ? TTY_EVERY_MS : PLAIN_EVERY_MS);
    this.#timer.unref();
  }

  /** Sets the function that describes the current step. */
  set(describe: () => string): void {
    this.#describe = describe;
    if (this.#output.isTTY === true) this.#show();
  }

  /** Prints a line that stays on the screen. */
  milestone(text: string): void {
    this.#clear();
    this.#output.write(`${this.#elapsed()}  ${text}\n`);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#clear();
  }

  #show(): void {
    const text = this.#describe();
    if (text === "") return;
    const line = `${this.#elapsed()}  … ${text}`;
    if (this.#output.isTTY !== true) this.#output.write(`${line}\n`);
    // A line that wraps cannot be rewritten, so it is cut to the width of the terminal.
    else this.#output.write(`\r\u001b[K${line.slice(0, (this.#output.columns ?? 80) - 1)}`);
  }

  #clear(): void {
    if (this.#output.isTTY === true) this.#output.write("\r\u001b[K");
  }

  #elapsed(): string {
    return `${((performance.now() - this.#started) / 1_000).toFixed(1).padStart(6)} s`;
  }
}
