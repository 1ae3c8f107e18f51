/** The nouns and shapes of the server, under the names that Python gives them. */
import type { components } from "./api.generated";

type Schemas = components["schemas"];

export type Agreement = Schemas["Agreement"];
export type Attribution = Schemas["Attribution"];
export type Change = Schemas["Change"];
export type Columns = Schemas["Columns"];
export type Counterfactual = Schemas["Counterfactual"];
export type DataProblems = Schemas["DataProblems"];
export type Disagreement = Schemas["Disagreement"];
export type Edit = Schemas["Edit"];
export type Example = Schemas["Example"];
export type ExamplePage = Schemas["ExamplePage"];
export type ExampleRow = Schemas["ExampleRow"];
export type ExampleView = Schemas["ExampleView"];
export type ExplanationSet = Schemas["ExplanationSet"];
export type Expectation = Schemas["Expectation"];
export type Export = Schemas["Export"];
export type Feedback = Schemas["Feedback"];
export type FeedbackUse = Schemas["FeedbackUse"];
export type FixMethod = Schemas["FixMethod"];
export type FixOffer = Schemas["FixOffer"];
export type Filter = Schemas["Filter"];
export type FlipChart = Schemas["FlipChart"];
export type FlipDesk = Schemas["FlipDesk"];
export type FlipDot = Schemas["FlipDot"];
export type FlipOffer = Schemas["FlipOffer"];
export type FlipPage = Schemas["FlipPage"];
export type FlipRating = Schemas["FlipRating"];
export type FlipView = Schemas["FlipView"];
export type History = Schemas["History"];
export type Home = Schemas["Home"];
export type Imported = Schemas["Imported"];
export type Invite = Schemas["Invite"];
export type Job = Schemas["Job"];
export type LossCurve = Schemas["LossCurve"];
export type Me = Schemas["Me"];
export type Measure = Schemas["Measure"];
export type Method = Schemas["Method"];
export type MethodOption = Schemas["MethodOption"];
export type NewComparison = Schemas["NewComparison"];
export type NewExport = Schemas["NewExport"];
export type NewFeedback = Schemas["NewFeedback"];
export type NewFix = Schemas["NewFix"];
export type NewFlips = Schemas["NewFlips"];
export type NewInvite = Schemas["NewInvite"];
export type NewJob = Schemas["NewJob"];
export type NextPlace = Schemas["NextPlace"];
export type Opinion = Schemas["Opinion"];
export type Person = Schemas["Person"];
export type PersonChange = Schemas["PersonChange"];
export type PersonShare = Schemas["PersonShare"];
export type Prediction = Schemas["Prediction"];
export type Progress = Schemas["Progress"];
export type ProjectCard = Schemas["ProjectCard"];
export type ProjectFacts = Schemas["ProjectFacts"];
export type ProjectPlan = Schemas["ProjectPlan"];
export type ProjectSettings = Schemas["ProjectSettings"];
export type Publish = Schemas["Publish"];
export type Recipe = Schemas["Recipe"];
export type Report = Schemas["Report"];
export type Retraction = Schemas["Retraction"];
export type Review = Schemas["Review"];
export type Revision = Schemas["Revision"];
export type RevisionView = Schemas["RevisionView"];
export type Revisions = Schemas["Revisions"];
export type Risk = Schemas["Risk"];
export type RiskChange = Schemas["RiskChange"];
export type RiskView = Schemas["RiskView"];
export type Saved = Schemas["Saved"];
export type Sentence = Schemas["Sentence"];
export type Span = Schemas["Span"];
export type Step = Schemas["Step"];
export type Team = Schemas["Team"];
export type Teammate = Schemas["Teammate"];
export type Terms = Schemas["Terms"];
export type Upload = Schemas["Upload"];
export type VoteUse = Schemas["VoteUse"];
export type WordEffect = Schemas["WordEffect"];
export type WordPage = Schemas["WordPage"];
export type WordRow = Schemas["WordRow"];
export type WordView = Schemas["WordView"];
export type WordVote = Schemas["WordVote"];

export type Answer = NewFeedback["says"];
export type OptionValue = boolean | number | string | null;
export type Options = Record<string, OptionValue>;
export type Role = Me["role"];
export type Sort = "order" | "least_confident" | "most_confident";
export type State = ExampleRow["state"];
export type WordOrder = "damage" | "total" | "score";
export type ExchangeFormat = "jsonl" | "csv" | "eraser" | "prodigy" | "label_studio";
export type Vote = WordVote["vote"];

/** One thing that was looked at. */
export interface Check {
  name: string;
  state: "ok" | "note" | "bad";
  says: string;
}

/** The result of the job `check`; results of jobs are not in the schema, because each kind has its own. */
export interface PlanReport {
  checks: Check[];
  columns: string[];
  chosen: Columns;
  preview: Example[];
  data_labels: string[];
  model_labels: string[];
  examples: number;
}
