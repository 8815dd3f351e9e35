type Trace = <T>(name: string, work: () => T) => T

let trace: Trace | undefined

/** Tracing is on from here on (operations/tracing.ts); without it `traced` is one comparison. */
export const setTrace = (given: Trace | undefined): void => {
  trace = given
}

/** Runs the work as a part of the request's trace, if there is one. Names are ours: they leave the house. */
export const traced: Trace = (name, work) => (trace ? trace(name, work) : work())
