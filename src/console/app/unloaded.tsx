import type { Loaded } from './hooks.ts'
import { Card, Failure, Heading, Loading } from './parts.tsx'

interface Unloaded {
  loaded: Pick<Loaded<unknown>, 'problem' | 'reload'>
}

/** Shows that an object is loading, or why it cannot be loaded. */
export const UnloadedCard = ({ loaded: { problem, reload } }: Unloaded) => (
  <Card>{problem ? <Failure problem={problem} retry={reload} /> : <Loading />}</Card>
)

/** Shows the screen of an object that is not loaded. `title` names the kind of object. */
export const UnloadedScreen = ({
  title,
  back,
  loaded,
}: Unloaded & { title: string; back: { href: string; label: string } }) => (
  <>
    <Heading title={title} back={back} />
    <UnloadedCard loaded={loaded} />
  </>
)
