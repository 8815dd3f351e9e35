import * as client from 'openid-client'
import { OutboundError } from '#src/http/outbound.ts'

/** What the audit log says of an error of openid-client: a word of ours, never what the provider sent. */
export const reasonOf = (error: unknown): string => {
  const chain = causes(error)
  if (chain.some(link => link instanceof OutboundError)) return 'provider_unreachable'
  return 'x'
}

const causes = (error: unknown): Error[] => {
  const chain: Error[] = []
  for (let link = error; link instanceof Error && chain.length < 5; link = link.cause) chain.push(link)
  return chain
}
void client
