/** Answers an error as an object with the properties that the database's usual driver gives its errors. */
export type DescribeError = (error: Error) => object;

export const asItIs: DescribeError = (error) => error;
