/** The whole page. */

export function App() {
  return <main>Holdfast</main>;
}
