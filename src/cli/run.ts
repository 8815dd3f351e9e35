import { directCall } from './direct-call.ts'

/**
 * Milliseconds after which the just-in-time compiler works as usual. The executable begins with a compiler
 * that waits eight times longer (.ci/build.ts), because compiling pays only for code that runs often.
 */
const START = 300

/**
 * Runs a command. Returns one of the exit codes that `gatehouse help` lists. For `exec` it returns the exit
 * code of the command that `exec` has run.
 */
export const run = async (args: string[]): Promise<number> => {
  setTimeout(() => Bun.unsafe.setJITPolicy(1), START).unref()
  const call = directCall(args) ?? (await import('./program.ts')).parsedCall(args)
  try {
    return (await call.run()) ?? Number(process.exitCode ?? 0)
  } catch (error) {
    const { withDetails } = await import('./error-details.ts')
    const { message, exit_code = 1 } = (await withDetails(error, call.options())) as Error & {
      exit_code?: number
    }
    console.error(`gatehouse: ${message}`)
    if (exit_code === 1 && process.env.GATEHOUSE_LOG_LEVEL === 'debug') console.error(error)
    return exit_code
  }
}
