import type { ComponentChildren } from 'preact'

/** A name, and the value shown beside it. */
export type Fact = [name: string, value: ComponentChildren]

/** Shows a list of names with their values. */
export const Facts = ({ facts }: { facts: readonly Fact[] }) => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)
