import { signal } from '@preact/signals'
import { Icon } from './icons.tsx'

const message = signal('')
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a notice that an action has succeeded. Four seconds are enough to read the few words of a notice. */
export const show = (text: string): void => {
  message.value = text
  clearTimeout(timer)
  timer = setTimeout(() => {
    message.value = ''
  }, 4_000)
}

/** Removes the current notice, because it belongs to the screen that the person leaves. */
export const hide = (): void => {
  message.value = ''
}

/** Shows the current notice, which screen readers announce. */
export const Toast = () => (
  <div class="toast" role="status">
    {message.value && (
      <p>
        <Icon name="check" /> {message.value}
      </p>
    )}
  </div>
)
