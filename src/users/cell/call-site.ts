type Method = (...given: never[]) => unknown;
type CaptureStackTrace = (target: { stack?: string }, method: Method | undefined) => void;

/**
 * The place in the application from which a method was called. By the time that the method fails, drivers and
 * pools have often ended the chain of awaits, so the error's own stack does not reach that place.
 */
export class CallSite {
  readonly #captured: { stack?: string } = {};

  /** @param method - The public method of `object`. Frames from it inwards are left out. */
  constructor(object: object, method: string) {
    // Cheap, because the engine makes the text only when it is read. Not every engine has it.
    const { captureStackTrace } = Error as { captureStackTrace?: CaptureStackTrace };
    captureStackTrace?.(this.#captured, (object as Record<string, Method>)[method]);
  }

  /** Adds the call to the stack of an error, or shows it `instead` of the frames inside the SDK. */
  showIn(error: Error, { instead }: { instead: boolean }): void {
    const frames = this.#frames;
    if (frames === "") return;
    const [caller = ""] = frames.split("\n", 1);
    const stack = error.stack ?? "";
    if (instead) error.stack = `${error.name}: ${error.message}\n${frames}`;
    else if (!stack.includes(caller)) error.stack = `${stack}\n${frames}`;
  }

  /** The first line describes the captured object. */
  get #frames(): string {
    const { stack = "" } = this.#captured;
    const end = stack.indexOf("\n");
    return end === -1 ? "" : stack.slice(end + 1);
  }
}
