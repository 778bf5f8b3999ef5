// The JSON between the library and this package, and the error.

export class EpitomeError extends Error {
  name = "EpitomeError";

  constructor(message, { kind = "usage", hints = [], causes = [], cause } = {}) {
    super([message, ...causes].join(": "), { cause });
    this.kind = kind;
    this.hints = hints;
    this.causes = causes;
  }
}

/** A value as JSON for the library. */
export function encode(value) {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw new EpitomeError(`this is no JSON: ${cause.message}`, { cause });
  }
}

/** An answer of the library. Throws the error that it has. */
export function decode(answer) {
  const value = JSON.parse(answer);
  if (value?.error?.kind === undefined) return value;
  const { message, ...about } = value.error;
  throw new EpitomeError(message, about);
}

/** Throws if there is an option that is not known: a misspelt one would be ignored. */
export function check(options, names) {
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) {
      const hints = [`there are: ${names.join(", ")}`];
      throw new EpitomeError(`no option is called \`${name}\``, { hints });
    }
  }
}
