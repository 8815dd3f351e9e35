import type { DevState } from '#src/dev/controls.ts'
import { requireShowable, resetAll } from '#src/dev/controls.ts'
import { Fault } from '#src/dev/fault-schema.ts'
import { LOG } from './log.ts'
import { MAILBOX } from './mailbox.ts'
import { steps, TOOLS } from './tools.ts'

type Action = { next: string; run(state: DevState, form: URLSearchParams): unknown }

const faultOf = (kind: string): object =>
  /^\d+$/.test(kind) ? { status: Number(kind) } : kind === 'slow' ? { delay: 5_000 } : { [kind]: true }

/** Actions of the forms, by the value of the pressed button. After the action the page `next` is shown. */
export const actions: Record<string, Action> = {
  clear_mail: { next: MAILBOX, run: ({ mail }) => mail.clear() },
  clear_requests: { next: LOG, run: ({ recorder }) => recorder.clear() },
  clear_faults: { next: TOOLS, run: ({ faults }) => faults.clear() },
  fault: {
    next: TOOLS,
    run: ({ faults }, form) => {
      const fault = Fault.safeParse({
        endpoint: form.get('endpoint') ?? '',
        times: Number(form.get('times')),
        ...faultOf(form.get('fault') ?? ''),
      })
      if (fault.success) faults.add(fault.data)
    },
  },
  advance: {
    next: TOOLS,
    run: ({ clock }, form) => {
      const ms = Number(form.get('ms'))
      if (!steps.some(([, step]) => step === ms)) return
      requireShowable(clock.now() + ms, 'advance')
      clock.advance(ms)
    },
  },
  freeze: { next: TOOLS, run: ({ clock }) => clock.freeze() },
  reset_clock: { next: TOOLS, run: ({ clock }) => clock.reset() },
  reset: { next: TOOLS, run: resetAll },
}
